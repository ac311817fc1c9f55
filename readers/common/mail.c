/* SPDX-License-Identifier: MIT */
#include "readers/common/mail.h"

#include "common/base/clock.h"
#include "common/base/uuid.h"

#include <curl/curl.h>
#include <time.h>

#define ADDRESS_SIZE 256

static void add_inert(struct buf *out, const char *text)
{
    for (; *text; text++)
        buf_add(out, *text >= 0x20 && *text < 0x7F ? text : "?", 1);
}

static void add_date(struct buf *out)
{
    char date[64];
    struct tm utc;
    time_t now = (time_t)clock_wall_s();
    if (gmtime_r(&now, &utc) && strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S +0000", &utc))
        buf_addf(out, "Date: %s\r\n", date);
}

void mail_write(const struct config *cfg, const char *service, const char *subject,
                const char *text, struct buf *ret_mail)
{
    char id[UUID_TEXT_SIZE];
    struct uuid uuid = uuid_v7();
    add_date(ret_mail);
    buf_add_text(ret_mail, "From: ");
    add_inert(ret_mail, cfg->notify_from);
    buf_add_text(ret_mail, "\r\nTo: ");
    add_inert(ret_mail, cfg->notify_to);
    buf_add_text(ret_mail, "\r\nSubject: ");
    add_inert(ret_mail, subject);
    buf_addf(ret_mail, "\r\nMessage-ID: <%s@%s.invalid>\r\n", uuid_text(&uuid, id), service);
    buf_add_text(ret_mail, "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                           "Content-Type: text/plain; charset=utf-8\r\n"
                           "Content-Transfer-Encoding: 8bit\r\n\r\n");
    for (; *text; text++) {
        if (*text == '\n')
            buf_add_text(ret_mail, "\r\n");
        else
            buf_add(ret_mail, (unsigned char)*text < 0x20 || *text == 0x7F ? "?" : text, 1);
    }
}

struct upload {
    struct sv rest;
    const atomic_bool *stop;
    int64_t stop_by_ms; /* once *stop */
};

static size_t on_read(char *to, size_t size, size_t count, void *arg)
{
    struct upload *upload = arg;
    size_t some = upload->rest.len < size * count ? upload->rest.len : size * count;
    memcpy(to, upload->rest.ptr, some);
    upload->rest = (struct sv){upload->rest.ptr + some, upload->rest.len - some};
    return some;
}

/* A mail under way when the program shall end gets one second more. */
static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct upload *upload = arg;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    if (!atomic_load(upload->stop))
        return 0;
    if (upload->stop_by_ms == 0)
        upload->stop_by_ms = clock_mono_ms() + 1000;
    return clock_mono_ms() >= upload->stop_by_ms;
}

static bool add_recipient(struct curl_slist **list, struct sv address)
{
    char text[ADDRESS_SIZE];
    while (address.len > 0 && *address.ptr == ' ')
        address = (struct sv){address.ptr + 1, address.len - 1};
    while (address.len > 0 && address.ptr[address.len - 1] == ' ')
        address.len--;
    if (address.len == 0)
        return true;
    if (!sv_copy(address, text, sizeof(text)))
        return false;
    struct curl_slist *more = curl_slist_append(*list, text);
    if (more)
        *list = more;
    return more != NULL;
}

static enum err_code add_recipients(const char *addresses, struct curl_slist **list,
                                    struct err *err)
{
    while (*addresses) {
        struct sv address = {addresses, strcspn(addresses, ",")};
        if (!add_recipient(list, address))
            return err_set(err, ERR_CONFIG, "notify.to: an address has at most %d bytes",
                           ADDRESS_SIZE - 1);
        addresses += address.len + (addresses[address.len] == ',');
    }
    return *list ? ERR_OK : err_set(err, ERR_CONFIG, "notify.to names nobody");
}

static void set_options(CURL *curl, const struct config *cfg, struct curl_slist *to,
                        struct upload *upload)
{
    bool login = cfg->notify_smtp_user[0] != 0;
    (void)curl_easy_setopt(curl, CURLOPT_URL, cfg->notify_smtp_url);
    (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    (void)curl_easy_setopt(curl, CURLOPT_USE_SSL, (long)(login ? CURLUSESSL_ALL : CURLUSESSL_TRY));
    if (login) {
        (void)curl_easy_setopt(curl, CURLOPT_USERNAME, cfg->notify_smtp_user);
        (void)curl_easy_setopt(curl, CURLOPT_PASSWORD, cfg->notify_smtp_password);
    }
    (void)curl_easy_setopt(curl, CURLOPT_MAIL_FROM, cfg->notify_from);
    (void)curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, to);
    (void)curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
    (void)curl_easy_setopt(curl, CURLOPT_READDATA, upload);
    (void)curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, upload);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)cfg->notify_timeout_ms);
}

enum err_code mail_send(const struct config *cfg, struct sv mail, const atomic_bool *stop,
                        struct err *err)
{
    struct curl_slist *to = NULL;
    struct upload upload = {.rest = mail, .stop = stop};
    enum err_code rc = add_recipients(cfg->notify_to, &to, err);
    CURL *curl = rc == ERR_OK ? curl_easy_init() : NULL;
    if (rc == ERR_OK && !curl)
        rc = err_set(err, ERR_NOMEM, "no memory for a mail");
    if (rc == ERR_OK) {
        set_options(curl, cfg, to, &upload);
        CURLcode code = curl_easy_perform(curl);
        if (code != CURLE_OK)
            rc = err_set(err, code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_IO,
                         "the mail server does not take it: %s", curl_easy_strerror(code));
    }
    curl_easy_cleanup(curl);
    curl_slist_free_all(to);
    return rc;
}

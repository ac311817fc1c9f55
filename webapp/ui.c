/* SPDX-License-Identifier: MIT */
#include "webapp/ui.h"

#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/base/openssl.h"
#include "webapp/handlers.h"
#include "webapp/web.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define FILES_MAX 32
#define FILE_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define NAME_SIZE 64
#define TAG_BYTES 16u /* of the digest */
#define TAG_SIZE (2 * TAG_BYTES + 3)
#define INDEX "index.html"
#define PACKED ".gz"
#define BESIDE_US "/../share/sluice/ui"

/* Nothing but what we serve ourselves; no frame around it, no form that goes anywhere. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

struct ui_file {
    char name[NAME_SIZE];
    struct buf bytes;
    char tag[TAG_SIZE]; /* a strong entity tag, quoted */
};

struct ui {
    struct ui_file files[FILES_MAX];
    size_t count;
};

/* ---- reading --------------------------------------------------------------------------------- */

static enum err_code make_tag(struct ui_file *file, struct err *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (!EVP_Digest(file->bytes.ptr, file->bytes.len, digest, &length, EVP_sha256(), NULL))
        return err_set(err, ERR_INTERNAL, "no SHA-256");
    file->tag[0] = '"';
    for (unsigned i = 0; i < TAG_BYTES; i++)
        (void)snprintf(file->tag + 1 + (size_t)2 * i, 3, "%02x", digest[i]);
    (void)snprintf(file->tag + 1 + (size_t)2 * TAG_BYTES, 2, "\"");
    return ERR_OK;
}

static enum err_code read_file(struct ui *ui, int folder_fd, const char *name, struct err *err)
{
    if (ui->count == FILES_MAX)
        return err_set(err, ERR_TOO_LARGE, "web.ui_dir holds more than %d files", FILES_MAX);
    struct ui_file *file = &ui->files[ui->count];
    file->bytes = BUF_INIT(FILE_BYTES_MAX);
    if (!sv_copy(sv_of(name), file->name, sizeof(file->name)))
        return err_set(err, ERR_TOO_LARGE, "web.ui_dir: the name %s is too long", name);
    ui->count++;
    enum err_code rc = fs_read(folder_fd, name, &file->bytes, err);
    return rc ? rc : make_tag(file, err);
}

static enum err_code read_folder(struct ui *ui, DIR *dir, struct err *err)
{
    struct dirent *entry = NULL;
    enum err_code rc = ERR_OK;
    while (rc == ERR_OK && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.')
            rc = read_file(ui, dirfd(dir), entry->d_name, err);
    }
    return rc;
}

/* The folder of the setting, or the one that is installed beside the program. */
static bool find_folder(const char *folder, char *ret_path, size_t size)
{
    char self[PATH_MAX];
    if (folder[0])
        return sv_copy(sv_of(folder), ret_path, size);
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length <= 0)
        return false;
    self[length] = 0;
    char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = 0;
    int written = snprintf(ret_path, size, "%s%s", self, BESIDE_US);
    return written > 0 && (size_t)written < size;
}

enum err_code ui_open(const char *folder, struct ui **ret_ui, struct err *err)
{
    char path[PATH_MAX];
    struct ui *ui = calloc(1, sizeof(*ui));
    if (!ui)
        return err_set(err, ERR_NOMEM, "out of memory");
    DIR *dir = find_folder(folder, path, sizeof(path)) ? opendir(path) : NULL;
    enum err_code rc = ERR_OK;
    if (dir) {
        rc = read_folder(ui, dir, err);
        (void)closedir(dir);
    } else if (folder[0]) {
        rc = err_set(err, ERR_CONFIG, "web.ui_dir = %s cannot be read", folder);
    } else {
        log_event(LOG_INFO, "web.ui.absent", LOG_S("folder", path));
    }
    if (rc) {
        ui_free(ui);
        return rc;
    }
    *ret_ui = ui;
    return ERR_OK;
}

void ui_free(struct ui *ui)
{
    for (size_t i = 0; ui && i < ui->count; i++)
        buf_done(&ui->files[i].bytes);
    free(ui);
}

/* ---- answering ------------------------------------------------------------------------------- */

static const struct ui_file *find(const struct ui *ui, struct sv name, const char *ending)
{
    char wanted[NAME_SIZE + sizeof(PACKED)];
    (void)snprintf(wanted, sizeof(wanted), "%.*s%s", (int)(name.len < NAME_SIZE ? name.len : 0),
                   name.len ? name.ptr : "", ending);
    for (size_t i = 0; i < ui->count; i++) {
        if (strcmp(ui->files[i].name, wanted) == 0)
            return &ui->files[i];
    }
    return NULL;
}

static const char *type_of(struct sv name)
{
    static const struct {
        const char *ending;
        const char *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    const char *dot = memrchr(name.ptr, '.', name.len);
    struct sv ending = {dot, dot ? (size_t)(name.ptr + name.len - dot) : 0};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (sv_is(ending, types[i].ending))
            return types[i].type;
    }
    return "application/octet-stream";
}

/* "gzip" among the codings, and not refused by a weight of zero. */
static bool takes_gzip(const struct request *req)
{
    struct sv accepted = request_header(req, HEADER_ACCEPT_ENCODING);
    const char *at = accepted.len ? memmem(accepted.ptr, accepted.len, "gzip", 4) : NULL;
    return at && strncmp(at + 4, ";q=0", 4) != 0;
}

static bool is_known(const struct request *req, const char *tag)
{
    struct sv tags = request_header(req, HEADER_IF_NONE_MATCH);
    return tags.len && memmem(tags.ptr, tags.len, tag, strlen(tag));
}

static struct MHD_Response *response_of(const struct ui_file *file, bool is_known)
{
    union {
        const char *ours;
        void *theirs; /* MHD reads only */
    } bytes = {.ours = is_known ? "" : file->bytes.ptr};
    return MHD_create_response_from_buffer(is_known ? 0 : file->bytes.len, bytes.theirs,
                                           MHD_RESPMEM_PERSISTENT);
}

static enum err_code reply_ui(struct request *req, struct sv name, struct err *err)
{
    const struct ui *ui = req->web->ui;
    const struct ui_file *packed = takes_gzip(req) ? find(ui, name, PACKED) : NULL;
    const struct ui_file *file = packed ? packed : find(ui, name, "");
    if (!file && ui->count == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "the administrators' page is not installed here (web.ui_dir)");
    if (!file)
        return err_set(err, ERR_NOT_FOUND, "the page has no such file");
    bool known = is_known(req, file->tag);
    struct MHD_Response *response = response_of(file, known);
    if (!response)
        return err_set(err, ERR_NOMEM, "out of memory");
    reply_response(req, known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
    reply_header(req, "ETag", file->tag);
    reply_header(req, "Cache-Control", "no-cache"); /* kept, and asked for before each use */
    reply_header(req, "Vary", "Accept-Encoding");
    reply_header(req, "Content-Type", type_of(name));
    reply_header(req, "Content-Security-Policy", POLICY);
    reply_header(req, "Referrer-Policy", "no-referrer");
    if (packed)
        reply_header(req, "Content-Encoding", "gzip");
    return ERR_OK;
}

enum err_code ui_index(struct request *req, struct err *err)
{
    return reply_ui(req, SV(INDEX), err);
}

enum err_code ui_file(struct request *req, struct err *err)
{
    return reply_ui(req, req->match.params[0], err);
}

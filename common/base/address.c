/* SPDX-License-Identifier: MIT */
#include "common/base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define V4_BITS 96 /* before the 32 bits of a mapped IPv4 address */
#define NET_TEXT_SIZE 64

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
static const uint8_t nat64[12] = {0, 0x64, 0xFF, 0x9B};

#define V4(a, b, c, bits)                                                                          \
    {                                                                                              \
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, a, b, c, 0}, V4_BITS + (bits)                   \
    }
#define V4_HOST(a, b, c, d)                                                                        \
    {                                                                                              \
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, a, b, c, d}, V4_BITS + 32                       \
    }
#define V6(bits, ...)                                                                              \
    {                                                                                              \
        {__VA_ARGS__}, bits                                                                        \
    }
/* What is not public (the registries of IANA for special addresses); of IPv6 besides everything
 * that is not 2000::/3. And what looks public, but is a cloud's own service on each of its hosts:
 * the agent of Azure (168.63.129.16), the service networks of IBM (161.26/16, 166.8/14). */
static const struct address_net special[] = {
    V4(0, 0, 0, 8),
    V4(10, 0, 0, 8),
    V4(100, 64, 0, 10),
    V4(127, 0, 0, 8),
    V4(161, 26, 0, 16),
    V4(166, 8, 0, 14),
    V4_HOST(168, 63, 129, 16),
    V4(169, 254, 0, 16),
    V4(172, 16, 0, 12),
    V4(192, 0, 0, 24),
    V4(192, 0, 2, 24),
    V4(192, 88, 99, 24),
    V4(192, 168, 0, 16),
    V4(198, 18, 0, 15),
    V4(198, 51, 100, 24),
    V4(203, 0, 113, 24),
    V4(224, 0, 0, 4),
    V4(240, 0, 0, 4),
    V6(23, 0x20, 0x01, 0x00),
    V6(32, 0x20, 0x01, 0x0D, 0xB8),
    V6(16, 0x20, 0x02),
    V6(20, 0x3F, 0xFF, 0x00),
};

/* Link-local ones, and where Alibaba's, Azure's and Amazon's hosts tell credentials beyond them. */
static const struct address_net of_host[] = {
    V4(169, 254, 0, 16),     V4_HOST(100, 100, 100, 200), V4_HOST(168, 63, 129, 16),
    V4_HOST(192, 0, 0, 192), V6(10, 0xFE, 0x80),          V6(32, 0xFD, 0x00, 0x0E, 0xC2),
};

static bool holds(const struct address_net *net, const uint8_t *bytes)
{
    size_t whole = net->bits / 8;
    unsigned rest = net->bits % 8;
    if (memcmp(net->bytes, bytes, whole) != 0)
        return false;
    return rest == 0 || ((net->bytes[whole] ^ bytes[whole]) >> (8 - rest)) == 0;
}

static bool is_public(const uint8_t *bytes)
{
    bool v4 = memcmp(bytes, mapped, sizeof(mapped)) == 0;
    if (!v4 && bytes[0] >> 5 != 1)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(special); i++) {
        if (holds(&special[i], bytes))
            return false;
    }
    return true;
}

static bool may(const struct address_nets *allowed, const uint8_t *bytes)
{
    for (size_t i = 0; i < allowed->count; i++) {
        if (holds(&allowed->items[i], bytes))
            return true;
    }
    return is_public(bytes);
}

static void put_v4(const void *v4, uint8_t *ret_bytes)
{
    memcpy(ret_bytes, mapped, sizeof(mapped));
    memcpy(ret_bytes + sizeof(mapped), v4, 4);
}

/* A translator takes such an address to the IPv4 address in it. */
static void unwrap(uint8_t *bytes)
{
    if (memcmp(bytes, nat64, sizeof(nat64)) == 0)
        memcpy(bytes, mapped, sizeof(mapped));
}

/* false: neither IPv4 nor IPv6. */
static bool read_bytes(const struct sockaddr *address, uint8_t *ret_bytes)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof(in));
        put_v4(&in.sin_addr, ret_bytes);
        return true;
    }
    if (address->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    memcpy(ret_bytes, &in6.sin6_addr, 16);
    unwrap(ret_bytes);
    return true;
}

bool address_may(const struct address_nets *allowed, const struct sockaddr *address)
{
    uint8_t bytes[16];
    return read_bytes(address, bytes) && may(allowed, bytes);
}

bool address_is_of_host(const struct sockaddr *address)
{
    uint8_t bytes[16];
    if (!read_bytes(address, bytes))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(of_host); i++) {
        if (holds(&of_host[i], bytes))
            return true;
    }
    return false;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* false: it is no address. *ret_bits: how many it has by itself. */
static bool parse_address(const char *text, uint8_t *ret_bytes, unsigned *ret_bits)
{
    uint8_t v4[4];
    if (inet_pton(AF_INET, text, v4) == 1) {
        put_v4(v4, ret_bytes);
        *ret_bits = 32;
        return true;
    }
    *ret_bits = 128;
    return inet_pton(AF_INET6, text, ret_bytes) == 1;
}

static bool parse_net(struct sv text, struct address_net *ret_net)
{
    char copy[NET_TEXT_SIZE];
    uint64_t bits = 0;
    unsigned most = 0;
    if (!sv_copy(text, copy, sizeof(copy)))
        return false;
    char *slash = strchr(copy, '/');
    if (slash)
        *slash = 0;
    if (!parse_address(copy, ret_net->bytes, &most))
        return false;
    bits = most;
    if (slash && !sv_u64(sv_of(slash + 1), most, &bits))
        return false;
    ret_net->bits = (unsigned)bits + (most == 32 ? V4_BITS : 0);
    return true;
}

enum err_code address_nets_parse(const char *text, struct address_nets *ret_nets, struct err *err)
{
    struct address_nets nets = {.count = 0};
    while (*text) {
        size_t length = strcspn(text, ", ");
        if (length > 0 && nets.count == ADDRESS_NETS_MAX)
            return err_set(err, ERR_CONFIG, "at most %d networks", ADDRESS_NETS_MAX);
        if (length > 0 && !parse_net((struct sv){text, length}, &nets.items[nets.count++]))
            return err_set(err, ERR_CONFIG,
                           "'%.*s' is no network; networks look like 10.1.0.0/16 or fd00::/8",
                           (int)(length < 60 ? length : 60), text);
        text += length + (text[length] != 0);
    }
    *ret_nets = nets;
    return ERR_OK;
}

bool address_host_may(const struct address_nets *allowed, struct sv host, bool *ret_literal)
{
    char copy[NET_TEXT_SIZE];
    uint8_t bytes[16];
    unsigned bits = 0;
    if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = (struct sv){host.ptr + 1, host.len - 2};
    *ret_literal = sv_copy(host, copy, sizeof(copy)) && parse_address(copy, bytes, &bits);
    if (!*ret_literal)
        return true;
    if (bits == 128)
        unwrap(bytes);
    return may(allowed, bytes);
}

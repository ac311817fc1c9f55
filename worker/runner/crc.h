/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RUNNER_CRC_H
#define WORKER_RUNNER_CRC_H

/* crc: CRC-32 (IEEE 802.3) over bytes, to know what a crash of the host tore.
 * Threads: any. */

#include "common/base/base.h"

uint32_t crc_of(const void *bytes, size_t size_bytes);

#endif

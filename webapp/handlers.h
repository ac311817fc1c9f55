/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_HANDLERS_H
#define WEBAPP_HANDLERS_H

/* handlers: the functions of routes.def, one file per resource. Threads: any handler thread. */

#include "webapp/route.h"

#define ROUTE(handler, ...) route_fn handler;
#include "webapp/routes.def"
#undef ROUTE

#endif

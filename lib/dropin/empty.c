/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in libraries have no code: what they are lies in their names, versions and dependencies (meson.build). */

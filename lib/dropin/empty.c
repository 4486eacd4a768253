/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries of this folder hold names and references to other libraries, and no code: see meson.build. */

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CMD_PACKAGES_H
#define UR_CMD_PACKAGES_H

/* Where distributions keep an RDMA program. */
struct ur_package {
	const char *program; /* a pattern of fnmatch(3) */
	const char *deb, *rpm;
};

/* By the name of a program, without a path; NULL for one that is not known. */
const struct ur_package *ur_package_of(const char *program);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/doctor: what could not be tried is not judged. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <string.h>

#include "doctor_facts.h"

void ur_suite_doctor_untried(void);

/* What could not be tried says nothing of the peer, and what is forbidden here is not said to be possible. */
static void doctor__not_tried(void)
{
	static const enum ur_doctor_ping untried[] = {UR_DOCTOR_PING_DENIED, UR_DOCTOR_PING_UNSENT};
	static struct ur_doctor_facts f;
	static struct ur_doctor_report r;

	for (unsigned i = 0; i < ur_array_size(untried); i++) {
		healthy(&f);
		f.peer.ping = untried[i];
		f.peer.ping_error = EPERM;
		f.peer.sized = false;
		f.peer.bytes = 0;
		ur_doctor_judge(&f, &r);
		for (unsigned k = 0; k < r.count; k++)
			CU_ASSERT_PTR_NULL(strstr(r.findings[k].sentence, "does not answer"));
	}
	healthy(&f);
	f.copy_error = EPERM;
	ur_doctor_judge(&f, &r);
	for (unsigned k = 0; k < r.count; k++)
		CU_ASSERT_NOT_EQUAL(r.findings[k].id, UR_DOC_COPY_OK);
}

void ur_suite_doctor_untried(void)
{
	CU_pSuite s = CU_add_suite("doctor_untried", NULL, NULL);

	CU_ADD_TEST(s, doctor__not_tried);
}

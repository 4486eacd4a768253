/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of the host and its interface: MTU, kernel, buffers, firewall, processes, limits, CPUs, clock. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor/internal.h"
#include "wire/path.h"

#define JUMBO 4200 /* an MTU that carries path MTU 4096 */

/* To look at, not to run by accident: it ends with a restart of the machine. */
#define NEWER_KERNEL "apt-cache search --names-only '^linux-image'    # install a newer kernel, and restart"

#define WANTED_RMEM (4u << 20)  /* a window that fills 10 Gbit/s for 3 ms */
#define LEAST_RMEM (128u << 10) /* below it not even a message of 64 KiB fits, as the kernel counts */
#define SLOW_CLOCK_NS 400       /* every look at the port reads it: through the vDSO it takes about 30 */

unsigned ur_doctor_ip_bytes(unsigned path_mtu)
{
	return path_mtu + UR_PATH_OVERHEAD;
}

unsigned ur_doctor_path_mtu(unsigned ip_bytes)
{
	return ip_bytes < ur_doctor_ip_bytes(256) ? 0 : 128u << ur_max_path_mtu((uint16_t)ur_min_u32(ip_bytes, UINT16_MAX));
}

void ur_doctor_judge_mtu(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	unsigned m = ur_doctor_path_mtu(f->mtu);

	if (!f->dev[0])
		return;
	if (m >= 2048)
		ur_doctor_add(r, UR_DOC_MTU_OK, "MTU %u: RoCE path MTU %u", f->mtu, m);
	else if (m == 1024)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_MTU_1024,
					       "MTU %u: RoCE path MTU 1024; with jumbo frames everywhere it would be 4096", f->mtu),
				 "ip link set dev %s mtu %u", f->dev, JUMBO);
	else if (m)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_MTU_SMALL, "MTU %u: RoCE path MTU %u, which takes %u packets where 1024 takes one",
					       f->mtu, m, 1024 / m),
				 "ip link set dev %s mtu 1500", f->dev);
	else
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_MTU_SMALL, "MTU %u is too small for RoCE, whose smallest path MTU needs %u",
					       f->mtu, ur_doctor_ip_bytes(256)),
				 "ip link set dev %s mtu 1500", f->dev);
}

void ur_doctor_judge_kernel(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	if (f->udp_segment && f->udp_gro)
		ur_doctor_add(r, UR_DOC_KERNEL_OK, "Linux %s has segmentation offload and GRO for UDP sockets", f->release);
	if (!f->udp_segment)
		ur_doctor_remedy(
			ur_doctor_add(
				r, UR_DOC_KERNEL_SEGMENT,
				"Linux %s cannot segment trains of UDP packets (UDP_SEGMENT, since 4.18): port udp sends them one by one",
				f->release),
			NEWER_KERNEL);
	if (!f->udp_gro)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_KERNEL_GRO,
					       "Linux %s cannot merge UDP packets into trains (UDP_GRO, since 5.0): "
					       "port udp receives them one by one",
					       f->release),
				 NEWER_KERNEL);
}

void ur_doctor_judge_buffer(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	enum ur_doctor_id id = f->rmem_max < LEAST_RMEM ? UR_DOC_BUFFER_TINY : UR_DOC_BUFFER_SMALL;

	if (f->net_admin) {
		ur_doctor_add(r, UR_DOC_BUFFER_OK, "receive buffers: net.core.rmem_max does not limit programs with CAP_NET_ADMIN");
		return;
	}
	if (!f->rmem_max) {
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_BUFFER_UNKNOWN, "cannot determine net.core.rmem_max, which limits receive buffers"),
			"sysctl net.core.rmem_max");
		return;
	}
	if (f->rmem_max >= WANTED_RMEM) {
		ur_doctor_add(r, UR_DOC_BUFFER_OK, "receive buffers: net.core.rmem_max is %" PRIu64, f->rmem_max);
		return;
	}
	ur_doctor_remedy(ur_doctor_add(r, id, "net.core.rmem_max is %" PRIu64 ": it limits the data in flight to a QP%s", f->rmem_max,
				       id == UR_DOC_BUFFER_TINY ? ", and packets are lost" : ", and a busy program may lose packets"),
			 "sysctl -w net.core.rmem_max=%u", 16u << 20);
}

void ur_doctor_judge_merge(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	bool in_the_way = ur_doctor_port_of(f) == UR_DOCTOR_DPDK && (f->gro || f->lro);

	if (!f->dev[0])
		return;
	if (in_the_way)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_MERGE_ON,
					       "%s merges frames (%s%s%s): port dpdk may receive some that are too long", f->dev,
					       f->gro ? "GRO" : "", f->gro && f->lro ? ", " : "", f->lro ? "LRO" : ""),
				 "ethtool -K %s gro off lro off", f->dev);
	else
		ur_doctor_add(r, UR_DOC_MERGE_OK, "%s has GRO %s and LRO %s: neither causes trouble", f->dev, f->gro ? "on" : "off",
			      f->lro ? "on" : "off");
}

/* Packet sockets and DPDK's have a frame before netfilter sees it. */
void ur_doctor_judge_firewall(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const struct ur_firewall *w = &f->firewall;
	enum ur_doctor_port_index port = ur_doctor_port_of(f);
	bool bypass = port == UR_DOCTOR_PACKET || port == UR_DOCTOR_DPDK;

	if (w->verdict == UR_FIREWALL_UNKNOWN && !w->remedy[0])
		ur_doctor_as_root(
			ur_doctor_add(r, UR_DOC_FIREWALL_UNKNOWN, "cannot determine whether a firewall drops UDP port 4791: %s", w->where),
			f);
	else if (w->verdict == UR_FIREWALL_UNKNOWN)
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_FIREWALL_UNKNOWN, "cannot determine whether a firewall drops UDP port 4791: %s", w->where),
			"%s", w->remedy);
	else if (w->verdict == UR_FIREWALL_PASSES)
		ur_doctor_add(r, UR_DOC_FIREWALL_OK,
			      w->rules ? "no rule of nftables drops UDP port 4791 (%u in all)" : "nftables has no firewall rule", w->rules);
	else if (bypass)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_FIREWALL_BYPASSED, "%s drops UDP port 4791, which does not affect port %s",
					       w->where, ur_doctor_port_names[port]),
				 "%s", w->remedy);
	else if (w->verdict == UR_FIREWALL_DROPS)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_FIREWALL_DROPS, "%s drops UDP port 4791", w->where), "%s", w->remedy);
	else
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_FIREWALL_MAY_DROP, "%s may drop UDP port 4791, which depends on the packet", w->where),
			"%s", w->remedy);
}

void ur_doctor_judge_processes(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	unsigned listed = ur_min_u32(f->process_count, UR_DOCTOR_PROCESSES), silent = 0;
	char pids[160] = "";

	if (!f->dev[0])
		return;
	if (!f->processes_known) {
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_PROCESSES_UNKNOWN, "cannot determine which other processes use uroce on %s", f->dev),
			"ss -xap | grep uroce");
		return;
	}
	for (unsigned i = 0; i < listed; i++) {
		const struct ur_doctor_process *p = &f->processes[i];
		size_t n = strlen(pids);

		if (p->pid && n < sizeof(pids) - 32)
			snprintf(pids + n, sizeof(pids) - n, "%s%d", n ? ", " : ": ", (int)p->pid);
		if (!p->silent || !p->pid)
			continue;
		silent++;
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PROCESSES_SILENT,
					       "process %d uses uroce and does not answer: it is stopped, and its "
					       "peers wait",
					       (int)p->pid),
				 p->uid == f->uid ? "kill -CONT %d" : "sudo kill -CONT %d", (int)p->pid);
		if (silent == 4)
			break;
	}
	if (!f->process_count)
		ur_doctor_add(r, UR_DOC_PROCESSES_OK, "no other process uses uroce on %s", f->dev);
	else if (!silent)
		ur_doctor_add(r, UR_DOC_PROCESSES_OK,
			      f->process_count == 1 ? "%u other process uses uroce on %s%s" : "%u other processes use uroce on %s%s",
			      f->process_count, f->dev, pids);
}

/* Nothing depends on it, which is worth a line to who comes from hardware. */
void ur_doctor_judge_memlock(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	char limit[48] = "unlimited";

	if (f->memlock != UINT64_MAX)
		snprintf(limit, sizeof(limit), "%" PRIu64 " KiB", f->memlock >> 10);
	ur_doctor_add(r, UR_DOC_MEMLOCK_OK, "RLIMIT_MEMLOCK is %s; uroce pins no memory, so any value will do", limit);
}

void ur_doctor_judge_cpu(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	unsigned spinners = f->spin_us ? f->process_count + 1 : 0;

	if (f->quota_percent && f->quota_percent < 100)
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_CPU_QUOTA,
				      "the control group allows %u%% of one CPU: programs are stopped repeatedly, and their peers retry",
				      f->quota_percent),
			"systemctl set-property --runtime UNIT CPUQuota=200%%");
	if (f->cpus <= spinners)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_CPU_FEW,
					       "%u CPU%s for %u program%s of uroce with a thread each that spins for up to "
					       "%" PRIu64 " us (it yields when others want the CPU)",
					       f->cpus, ur_plural(f->cpus), spinners, ur_plural(spinners), f->spin_us),
				 "export UROCE_SPIN_US=0");
	else if (!f->quota_percent || f->quota_percent >= 100)
		ur_doctor_add(r, UR_DOC_CPU_OK, "%u CPU%s", f->cpus, ur_plural(f->cpus));
}

void ur_doctor_judge_clock(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	if (f->clock_ns <= SLOW_CLOCK_NS) {
		ur_doctor_add(r, UR_DOC_CLOCK_OK, "clock source %s, read in %u ns", f->clock, f->clock_ns);
		return;
	}
	ur_doctor_remedy(ur_doctor_add(r, UR_DOC_CLOCK_SLOW, "clock source %s takes %u ns to read, and each poll for packets reads it",
				       f->clock, f->clock_ns),
			 "sudo sh -c 'cd /sys/devices/system/clocksource/clocksource0 && cat available_clocksource && echo tsc "
			 ">current_clocksource'");
}

/* kernel.yama.ptrace_scope decides whether processes of one user may read one another's memory; with 1, one that has been permitted may. */
void ur_doctor_judge_copy(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const bool one = f->ptrace_scope == 1;

	if (f->copy_error) {
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_COPY_FORBIDDEN,
				      "process_vm_readv(2) is refused here (%s), mostly by a container's seccomp filter: a process of "
				      "this host sends packets to the others, where it could copy long messages",
				      strerror(f->copy_error)),
			"docker run --cap-add SYS_PTRACE    # or a seccomp profile that allows process_vm_readv");
		return;
	}
	if (!f->ptrace_scope) {
		ur_doctor_add(r, UR_DOC_COPY_OK, "processes of this host may copy long messages from one another's memory");
		return;
	}
	ur_doctor_remedy(ur_doctor_add(r, UR_DOC_COPY_LIMITED,
				       "kernel.yama.ptrace_scope is %u: a process of this host can let %s copy long messages from its "
				       "memory, and sends packets to %s",
				       f->ptrace_scope, one ? "one other" : "no other", one ? "the rest" : "all others"),
			 "sudo sysctl kernel.yama.ptrace_scope=0");
}

/* Whoever looks at packets has to be sent packets (ur_nic_set_watched). */
#define NO_COPIES "exchange packets with processes of this host instead of copying long messages"

void ur_doctor_judge_settings(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const char *const where = "uroce info --config    # says where it is set";

	if (f->fault[0])
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_SETTINGS_FAULT,
					       "the setting fault is '%s': programs drop or change packets as it says, and " NO_COPIES,
					       f->fault),
				 "%s", where);
	if (f->capture || f->trace)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_SETTINGS_WATCHED,
					       "the setting %s is set: programs write every packet to a file, and " NO_COPIES,
					       f->capture ? "capture" : "trace"),
				 "%s", where);
	if (!f->fault[0] && !f->capture && !f->trace && !f->settings_unknown)
		ur_doctor_add(r, UR_DOC_SETTINGS_OK, "no setting injects faults, or writes a capture or a trace");
}

# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The table of test/apps/matrix:
#
#   row NAME "COMMAND" [short] [clean] [KEY=VALUE...]
#
# COMMAND runs on both sides, the client's with the server's address behind it. `short` rows are part of tools/check; `clean` ones must leave the counters
# of refusals alone, and nearly so those of losses. Keys:
#   server, client   further options of one side
#   host             what the client connects to (10.77.0.1)
#   port             where the server listens (18515)
#   mtu              of both interfaces (1500)
#   kind             of port (the setting `port`)
#   limit            seconds that either side may take (30)
#   says, lines      expression that lines of the output of client or server must match, and how many of them at least (1 line of figures)
#   clients          how many clients at once (1)
#   client_ends, server_ends   exit status (0)
#
# UC and UD lose what the receiver's ring does not hold, and a program that counts what comes then waits for ever. Rows of theirs send no more, in packets
# and in messages, than the ring (1536 frames) and the receives posted at first take without the receiver running at all; or they run for a time (-D).

# --- ibv_rc_pingpong ---
P='ibv_rc_pingpong -g 0'
row rc_pingpong "$P"
row rc_pingpong_validate "$P -c -n 200" short
row rc_pingpong_events "$P -e -c -n 200" short
row rc_pingpong_timestamps "$P -t -n 200" says='^Max receive completion clock cycles = [1-9]' short
row rc_pingpong_timestamps_events "$P -t -e -n 200" says='^Max receive completion clock cycles = [1-9]'
row rc_pingpong_new_post "$P -N -c -n 200" short
row rc_pingpong_new_post_events "$P -N -e -t -c -n 200"
for m in 256 512 1024; do row "rc_pingpong_mtu_$m" "$P -m $m -c -s 5000 -n 100"; done
for m in 2048 4096; do row "rc_pingpong_mtu_$m" "$P -m $m -c -s 20000 -n 100" mtu=9000; done
for s in 1 3 33 255 256 257 1023 1024 1025 4095 4097 65536 262145; do row "rc_pingpong_size_$s" "$P -c -s $s -n 50"; done
row rc_pingpong_size_1048576 "$P -c -s 1048576 -n 20" short
row rc_pingpong_size_1048577 "$P -c -e -N -s 1048577 -n 20"
row rc_pingpong_rx_depth_1 "$P -r 1 -c -n 200"
row rc_pingpong_rx_depth_4000 "$P -r 4000 -n 4000"
row rc_pingpong_service_level "$P -l 5 -n 200"
row rc_pingpong_port "$P -p 20000 -d uroce0 -i 1 -n 200" port=20000
row rc_pingpong_ipv6 "ibv_rc_pingpong -g $GID6 -c -n 200" short
row rc_pingpong_on_demand "$P -o -c -n 200" short
row rc_pingpong_on_demand_prefetch "$P -o -P -c -n 200"
row rc_pingpong_on_demand_big "$P -o -e -s 1000000 -n 20"
row rc_pingpong_implicit "$P -O -c -n 200" short
row rc_pingpong_implicit_prefetch "$P -O -P -c -n 200"
row rc_pingpong_implicit_new_post "$P -O -N -n 200"
row rc_pingpong_device_memory "$P -j -c -n 200" short
row rc_pingpong_device_memory_big "$P -j -c -e -s 1048576 -n 10"
row rc_pingpong_device_memory_new_post "$P -j -N -n 200"
row rc_pingpong_device_memory_timestamps "$P -j -t -n 200"

# --- ibv_uc_pingpong ---
P='ibv_uc_pingpong -g 0'
row uc_pingpong "$P -c -n 200" short
row uc_pingpong_events "$P -e -c -n 200"
for m in 256 512 1024; do row "uc_pingpong_mtu_$m" "$P -m $m -c -s 5000 -n 100"; done
for m in 2048 4096; do row "uc_pingpong_mtu_$m" "$P -m $m -c -s 20000 -n 100" mtu=9000; done
for s in 1 3 33 1023 1025 4095 4097 65536; do row "uc_pingpong_size_$s" "$P -c -s $s -n 50"; done
row uc_pingpong_size_1048576 "$P -c -s 1048576 -n 20"
row uc_pingpong_rx_depth_1 "$P -r 1 -c -n 200"
row uc_pingpong_service_level "$P -l 3 -n 200"
row uc_pingpong_ipv6 "ibv_uc_pingpong -g $GID6 -c -n 200"

# --- ibv_ud_pingpong: no message is longer than a packet, and -m does not exist ---
P='ibv_ud_pingpong -g 0'
row ud_pingpong "$P -c -s 1024 -n 200" short
row ud_pingpong_events "$P -e -c -s 1024 -n 200"
for s in 1 3 33 256 1023; do row "ud_pingpong_size_$s" "$P -c -s $s -n 100"; done
row ud_pingpong_size_4096 "$P -c -s 4096 -n 100" mtu=9000
row ud_pingpong_rx_depth_1 "$P -r 1 -c -s 1000 -n 200"
row ud_pingpong_service_level "$P -l 7 -s 1000 -n 200"
row ud_pingpong_ipv6_events "ibv_ud_pingpong -g $GID6 -e -c -s 1000 -n 200" short

# --- ibv_srq_pingpong ---
P='ibv_srq_pingpong -g 0'
row srq_pingpong "$P -n 500" short
row srq_pingpong_one "$P -q 1 -n 500"
row srq_pingpong_events "$P -e -q 4 -c -n 500" short
row srq_pingpong_many "$P -q 128 -r 1000 -n 100"
row srq_pingpong_few_receives "$P -q 16 -r 16 -n 200"
row srq_pingpong_on_demand "$P -o -q 4 -c -n 200"
for m in 256 512 1024; do row "srq_pingpong_mtu_$m" "$P -m $m -c -s 5000 -q 4 -n 100"; done
for m in 2048 4096; do row "srq_pingpong_mtu_$m" "$P -m $m -c -s 20000 -q 4 -n 100" mtu=9000; done
for s in 1 33 4097; do row "srq_pingpong_size_$s" "$P -c -s $s -q 4 -n 100"; done
row srq_pingpong_size_1048576 "$P -c -s 1048576 -q 2 -r 8 -n 10"
row srq_pingpong_service_level "$P -l 2 -q 2 -n 100"
row srq_pingpong_ipv6 "ibv_srq_pingpong -g $GID6 -c -q 4 -n 100"

# --- ibv_xsrq_pingpong ---
P='ibv_xsrq_pingpong -g 0 -m 1024'
row xsrq_pingpong "$P" says='^success' lines=2 short
row xsrq_pingpong_events "$P -e -n 200" short
row xsrq_pingpong_on_demand "$P -o -n 200"
for m in 2048 4096; do row "xsrq_pingpong_mtu_$m" "ibv_xsrq_pingpong -g 0 -m $m -s 20000 -n 100" mtu=9000; done
for m in 256 512; do row "xsrq_pingpong_mtu_$m" "ibv_xsrq_pingpong -g 0 -m $m -s 5000 -n 100"; done
for s in 1 33 4097 1048576; do row "xsrq_pingpong_size_$s" "$P -s $s -n 50"; done
row xsrq_pingpong_service_level "$P -l 2 -n 100"
row xsrq_pingpong_ipv6 "ibv_xsrq_pingpong -m 1024 -g $GID6 -n 100"
row xsrq_pingpong_clients "$P -n 1" server='-c 3' clients=3 says='^success' lines=4

# --- perftest: every program with every service that it has ---
# No questions about the frequency of the CPU; the GID of the IPv4 address; and more than half a second for a peer that does not run.
T='-F -x 0 -u 17'
for p in send write; do
	for c in RC XRC; do
		row "${p}_bw_$c" "ib_${p}_bw $T -c $c -s 65536 -n 500" short
		row "${p}_lat_$c" "ib_${p}_lat $T -c $c -s 64 -n 500"
	done
	row "${p}_bw_UC" "ib_${p}_bw $T -c UC -s 2048 -n 400" short
	row "${p}_lat_UC" "ib_${p}_lat $T -c UC -s 64 -n 500" short
done
row send_bw_UD "ib_send_bw $T -c UD -s 1024 -n 400" short
row send_lat_UD "ib_send_lat $T -c UD -s 64 -n 500" short
for p in read atomic; do
	row "${p}_bw_RC" "ib_${p}_bw $T -n 1000" short
	row "${p}_lat_RC" "ib_${p}_lat $T -n 500" short
	row "${p}_bw_XRC" "ib_${p}_bw $T -c XRC -n 500"
	row "${p}_lat_XRC" "ib_${p}_lat $T -c XRC -n 500"
done

# --- connected by the RDMA CM ---
for p in send write; do
	row "${p}_bw_RC_cm" "ib_${p}_bw $T -R -s 4096 -n 200" short
	row "${p}_lat_RC_cm" "ib_${p}_lat $T -R -s 64 -n 200"
done
row send_bw_UD_cm "ib_send_bw $T -R -c UD -s 1024 -n 400" short
row send_lat_UD_cm "ib_send_lat $T -R -c UD -s 64 -n 200" short
for p in read atomic; do
	row "${p}_bw_RC_cm" "ib_${p}_bw $T -R -n 200"
	row "${p}_lat_RC_cm" "ib_${p}_lat $T -R -n 200"
done
for p in send_bw write_bw read_bw atomic_bw send_lat write_lat read_lat atomic_lat; do
	row "${p}_com_cm" "ib_$p $T -z -n 200"
done
row send_bw_cm_qps "ib_send_bw $T -R -q 16 -s 4096 -n 200"
row write_bw_cm_tos "ib_write_bw $T -R -T 96 -s 4096 -n 200"
row send_bw_cm_retry_count "ib_send_bw $T -R --retry_count=5 -s 4096 -n 200"

# --- all sizes; what takes long here is perftest's own: it measures the CPU's clock anew for each size, 0.4 s of spinning on either side ---
for p in send_bw write_bw read_bw send_lat write_lat read_lat; do
	row "${p}_all" "ib_$p $T -a -n 5" lines=23 limit=300
	row "${p}_all_XRC" "ib_$p $T -a -c XRC -n 5" lines=23 limit=300
done
row write_bw_all_UC "ib_write_bw $T -a -c UC -n 5" lines=23 limit=300 # the other side counts nothing
for s in 2 1024 1025 65536 262144; do row "send_bw_UC_size_$s" "ib_send_bw $T -c UC -s $s -n 5"; done
for s in 2 1024 1025 65536 1048576; do
	row "send_lat_UC_size_$s" "ib_send_lat $T -c UC -s $s -n 20"
	row "write_lat_UC_size_$s" "ib_write_lat $T -c UC -s $s -n 20"
done
for p in send_bw send_lat; do row "${p}_all_UD" "ib_$p $T -a -c UD -n 100" lines=10 limit=200; done
for p in send_bw write_bw read_bw send_lat write_lat read_lat; do row "${p}_all_cm" "ib_$p $T -a -R -n 5" lines=23 limit=300; done
for p in send_bw write_bw read_bw; do row "${p}_all_bidirectional" "ib_$p $T -a -b -n 5" lines=23 limit=300; done

# --- both ways ---
row send_bw_bidirectional "ib_send_bw $T -b -s 65536 -n 500" short
row write_bw_bidirectional "ib_write_bw $T -b -s 65536 -n 500"
row read_bw_bidirectional "ib_read_bw $T -b -s 65536 -n 500"
row atomic_bw_bidirectional "ib_atomic_bw $T -b -n 1000" short
row send_bw_bidirectional_both "ib_send_bw $T -b --report-both -s 65536 -n 300"
row send_bw_bidirectional_UC "ib_send_bw $T -b -c UC -s 2048 -n 200"
row write_bw_bidirectional_UC "ib_write_bw $T -b -c UC -s 2048 -n 200"
row send_bw_bidirectional_UD "ib_send_bw $T -b -c UD -s 1024 -n 200"
row send_bw_bidirectional_cm "ib_send_bw $T -b -R -s 65536 -n 200"
for p in send write read; do row "${p}_bw_reversed" "ib_${p}_bw $T --reversed -s 65536 -n 300"; done

# --- many QPs ---
row send_bw_qps "ib_send_bw $T -q 16 -s 4096 -n 500" short
row write_bw_qps "ib_write_bw $T -q 16 -s 4096 -n 500"
row read_bw_qps "ib_read_bw $T -q 16 -s 4096 -n 500" short
row atomic_bw_qps "ib_atomic_bw $T -q 16 -n 500"
row send_bw_qps_XRC "ib_send_bw $T -q 16 -c XRC -s 4096 -n 200"
row send_bw_qps_UD "ib_send_bw $T -q 4 -c UD -s 1024 -n 100"
row write_bw_qps_bidirectional "ib_write_bw $T -q 16 -b -s 4096 -n 200"
row write_bw_mr_per_qp "ib_write_bw $T -q 4 --mr_per_qp -s 4096 -n 500"

# --- GID indices ---
for p in send_bw write_bw read_bw atomic_bw send_lat write_lat read_lat atomic_lat; do row "${p}_ipv6" "ib_$p -F -x $GID6 --ipv6 -n 200"; done
row send_bw_ipv6_UD "ib_send_bw -F -x $GID6 -c UD -s 1024 -n 400" short
row send_bw_gid_default "ib_send_bw -F -s 4096 -n 500"

# --- inline, receives inline ---
for p in send write; do
	row "${p}_lat_inline" "ib_${p}_lat $T -I 220 -s 200 -n 1000" short
	row "${p}_bw_inline" "ib_${p}_bw $T -I 64 -s 64 -n 2000"
	row "${p}_lat_inline_none" "ib_${p}_lat $T -I 0 -s 200 -n 500"
done
row send_lat_inline_UD "ib_send_lat $T -c UD -I 128 -s 128 -n 500"
row send_lat_inline_XRC "ib_send_lat $T -c XRC -I 128 -s 128 -n 500"
row send_lat_inline_cm "ib_send_lat $T -R -I 128 -s 128 -n 200"

# --- events, completion vectors ---
for p in send_bw read_bw atomic_bw send_lat read_lat atomic_lat; do row "${p}_events" "ib_$p $T -e -n 500"; done
row send_bw_events_UD "ib_send_bw $T -e -c UD -s 1024 -n 400"
row send_bw_events_XRC "ib_send_bw $T -e -c XRC -s 4096 -n 400"
row send_bw_events_qps "ib_send_bw $T -e -q 16 -s 4096 -n 200" short
row send_bw_events_vector "ib_send_bw $T -e -X 0 -s 4096 -n 500"
row send_bw_events_cm "ib_send_bw $T -e -R -s 4096 -n 200"

# --- shared receive queues ---
row send_bw_srq "ib_send_bw $T --use-srq -s 4096 -n 500"
row send_bw_srq_qps "ib_send_bw $T --use-srq -q 16 -s 4096 -n 500" short
row send_bw_srq_UD "ib_send_bw $T --use-srq -c UD -s 1024 -n 300"
row send_bw_srq_bidirectional "ib_send_bw $T --use-srq -b -q 4 -s 4096 -n 300"
row send_lat_srq "ib_send_lat $T --use-srq -s 64 -n 500"
row send_bw_srq_events_cm "ib_send_bw $T --use-srq -e -R -q 4 -s 4096 -n 200"

# --- for a time ---
for p in send_bw write_bw read_bw atomic_bw send_lat read_lat atomic_lat; do row "${p}_duration" "ib_$p $T -D 2 -f 0"; done
row write_lat_duration "ib_write_lat $T -D 2 -f 0"
row write_bw_duration_UC "ib_write_bw $T -D 2 -f 0 -c UC -s 4096"
row send_bw_duration_UC "ib_send_bw $T -D 2 -f 0 -c UC -s 4096"
row send_bw_duration_UD "ib_send_bw $T -D 2 -f 0 -c UD -s 1024"
row send_bw_duration_bidirectional "ib_send_bw $T -D 2 -f 0 -b -s 65536"
row write_bw_duration_cpu "ib_write_bw $T -D 2 -f 0 --cpu_util -s 65536"
row write_bw_duration_qps "ib_write_bw $T -D 2 -f 0 -q 16 -s 4096" short

# --- multicast ---
# Its group, ff01:..., is for this host alone: the kernel sends it to nobody.
row send_bw_multicast "ib_send_bw -F -x $GID6 -c UD -g -s 1024 -n 400" short kind=packet
row send_lat_multicast "ib_send_lat -F -x $GID6 -c UD -g -s 64 -n 200"
row send_bw_multicast_group "ib_send_bw -F -x $GID6 -c UD -g -M 255:14:0:0:0:0:0:0:0:0:0:0:0:7:0:7 -s 1024 -n 400"
row send_bw_multicast_ipv4 "ib_send_bw $T -c UD -g -M 0:0:0:0:0:0:0:0:0:0:255:255:239:7:7:7 -s 1024 -n 400"
row send_lat_multicast_ipv4 "ib_send_lat $T -c UD -g -M 0:0:0:0:0:0:0:0:0:0:255:255:239:7:7:7 -s 64 -n 200"

# --- ways of posting ---
for p in send_bw write_bw read_bw atomic_bw send_lat write_lat read_lat atomic_lat; do
	row "${p}_old_post" "ib_$p $T --use_old_post_send -n 500"
done
for p in send_bw write_bw read_bw atomic_bw; do
	row "${p}_post_list" "ib_$p $T -l 16 -n 512"
	row "${p}_tx_depth_1" "ib_$p $T -t 1 -n 300"
	row "${p}_tx_depth_1024" "ib_$p $T -t 1024 -n 2000"
	row "${p}_cq_mod" "ib_$p $T -Q 1 -n 500"
done
row send_bw_post_lists "ib_send_bw $T -l 8 --recv_post_list=8 -r 512 -s 4096 -n 512" short
row send_bw_post_list_UD "ib_send_bw $T -l 8 -c UD -s 1024 -n 400"
row send_bw_rx_depth_1 "ib_send_bw $T -r 1 -s 4096 -n 200"
row send_bw_rx_depth_4096 "ib_send_bw $T -r 4096 -s 4096 -n 2000"
row send_lat_rx_depth_1 "ib_send_lat $T -r 1 -n 200"
row send_bw_no_peak "ib_send_bw $T -N -s 4096 -n 500"
row write_bw_warm_up "ib_write_bw $T --perform_warm_up -Q 1 -s 4096 -n 500"
for o in 1 4 16; do
	row "read_bw_outstanding_$o" "ib_read_bw $T -o $o -s 16384 -n 500"
	row "atomic_bw_outstanding_$o" "ib_atomic_bw $T -o $o -n 500"
done
for p in bw lat; do
	for a in CMP_AND_SWAP FETCH_AND_ADD; do row "atomic_${p}_$a" "ib_atomic_$p $T -A $a -n 500"; done
done

# --- attributes of the path ---
for p in send_bw write_bw read_bw send_lat; do
	for m in 256 512 1024; do row "${p}_mtu_$m" "ib_$p $T -m $m -s 20000 -n 200"; done
	for m in 2048 4096; do row "${p}_mtu_$m" "ib_$p $T -m $m -s 20000 -n 200" mtu=9000; done
done
row send_bw_UD_mtu_4096 "ib_send_bw $T -c UD -m 4096 -s 4096 -n 300" mtu=9000
row send_bw_service_level "ib_send_bw $T -S 3 -s 4096 -n 500"
row send_bw_tclass "ib_send_bw $T --tclass=96 -s 4096 -n 500"
row send_bw_pkey_index "ib_send_bw $T --pkey_index=0 -s 4096 -n 500"
row send_bw_timeout "ib_send_bw $T -u 14 -s 65536 -n 300"
row write_bw_device_port "ib_write_bw $T -d uroce0 -i 1 -p 20000 -s 4096 -n 500" port=20000

# --- kinds of memory ---
for p in send_bw write_bw read_bw send_lat write_lat read_lat; do row "${p}_on_demand" "ib_$p $T --odp -s 65536 -n 300"; done
row write_bw_relaxed_ordering_off "ib_write_bw $T --disable_pcie_relaxed -s 65536 -n 300"

# --- limited rate and what is printed ---
row write_bw_rate_limit "ib_write_bw $T --rate_limit=1 --rate_limit_type=SW -s 4096 -n 500" short
row send_bw_rate_limit_UD "ib_send_bw $T -c UD --rate_limit=1 --rate_limit_type=SW -s 1024 -n 400"
row write_bw_gbits "ib_write_bw $T --report_gbits -s 65536 -n 300"
row write_bw_verify_bw "ib_write_bw $T -w 0.001 -y 0.00001 -s 65536 -n 300"
row send_lat_cycles "ib_send_lat $T -C -n 200"
row send_lat_histogram "ib_send_lat $T -H -n 200" says='^[0-9]+, [0-9]' lines=200
row send_lat_unsorted "ib_send_lat $T -U -n 200" says='^[0-9]+, [0-9]' lines=200
row write_lat_gap "ib_write_lat $T --latency_gap=1000 -n 100"
row send_bw_wait_destroy "ib_send_bw $T --wait_destroy=1 -s 4096 -n 200"
row send_bw_json "ib_send_bw $T --out_json --out_json_file=/dev/shm/perftest.json -D 1 -f 0 -s 4096"
row send_bw_link "ib_send_bw $T --force-link=Ethernet -s 4096 -n 200"
row send_bw_inline_receive "ib_send_bw $T --inline_recv=64 -s 64 -n 200"
row write_bw_source_address "ib_write_bw $T -s 4096 -n 200" client='--source_ip=10.77.0.2'

# --- the counters of both sides: nothing refused or dropped, next to nothing repaired ---
# A receive for each SEND: a server that waits for a CPU posts no new ones, and what is behind an RNR NAK is all sent again.
row clean_send_bw "ib_send_bw $T -r 1000 -s 65536 -n 1000" short clean
row clean_write_bw "ib_write_bw $T -s 65536 -n 1000" short clean
row clean_read_bw "ib_read_bw $T -s 65536 -n 1000" short clean
row clean_atomic_bw "ib_atomic_bw $T -n 5000" clean
row clean_send_bw_UD "ib_send_bw $T -c UD -s 1024 -n 400" clean

/*
 * The server-side etags of one node in one database: blocks on its disk, the ceiling in
 * the cluster, clean stops, crashes, and a disk that is set back to an older copy.
 *
 * The node may be cut off at any time: its messages to the cluster arrive late, or
 * never, and it starts without the cluster's answer.
 *
 * Code: etag/counters.go and reserver.go (blocks), etag/reconcile.go,
 * server/etags (the keeper), fsm/etag.go (the cluster's record).
 *
 * Promise, as an assertion: each etag is above all before it, across every restart. It
 * does not hold where docs/promises.md says so: the disk was set back, and the node gives
 * etags before the cluster has answered, or had given etags in a start of which the
 * cluster never heard, or had passed its ceiling.
 *
 * Left out: several databases, floors of a shared tag, calls that run at once. Blocks
 * have 2 etags, ceilings steps of 2, so that few numbers show what happens.
 *
 * Faults, each of which must be found:
 *   BEFORE_WRITE    a block is used before it is written
 *   NO_CEILING      a start ignores the ceiling
 *   NO_COMPARISON   a clean stop on the disk is believed without the cluster's
 *   NO_START_NUMBER the cluster believes a clean stop of an earlier start
 *   STOP_UNCOMPARED a node that was not compared with the cluster tells it of a clean stop
 *   KEEPS_CLEAN     a start leaves the cluster's record of the clean stop
 */

#define BLOCK  2
#define STEP   2
#define STARTS 3
#define MOST   6	/* etags */

typedef Disk { bool clean; byte value };
Disk disk, copy;
bool copied, setBacks;

/* The cluster's record: fsm.etagRecord. */
byte starts, ceiling, last;
bool clean;

/* The node's memory. */
mtype = { down, waiting, serving };
mtype phase = down;
Disk opened;
byte used, limit, writing;	/* writing: a block that is on its way to the disk */
byte start;			/* the newest start number that the node heard */
bool viewed, compared;
byte viewCeiling, viewLast;	/* the answer to the first announcement */
bool viewClean;

/* Messages: the newest of each kind; it may arrive at any time, or never. */
byte raiseTo, stopStart, stopLast;

/* What the world knows. */
byte greatest;	/* etag that was given */
byte runs;
bool heard;	/* the cluster has counted the present start */
bool alone;	/* etags were given in starts that it has not counted */
bool behind;	/* the disk was set back, and has not caught up */

byte n;	/* of one step; always reset */

#define HIGHER(a, b) (a > b -> a : b)

/* reconcile is etag.Reconcile and what follows from it. */
inline reconcile() {
	compared = true;
	n = 0;
	if
	:: behind && greatest > viewCeiling -> goto end	/* It had passed its ceiling. */
	:: else
	fi;
	if
#ifdef NO_COMPARISON
	:: opened.clean -> skip
	:: !opened.clean ->
#else
	:: opened.clean && viewClean && opened.value == viewLast -> skip
	:: !(opened.clean && viewClean && opened.value == viewLast) ->
#endif
#ifdef NO_CEILING
		n = HIGHER(viewLast, opened.value)
#else
		n = HIGHER(viewCeiling, HIGHER(viewLast, opened.value))
#endif
		if :: n > used -> used = n :: else fi
	fi;
	n = 0; opened.clean = false; opened.value = 0; viewCeiling = 0; viewLast = 0; viewClean = false
}

/* write is one durable step of the disk. */
inline write(isClean, to) {
	disk.clean = isClean; disk.value = to;
	if :: used >= greatest && to >= greatest -> behind = false :: else fi
}

inline stopped() {
	phase = down; heard = false; used = 0; limit = 0; writing = 0; start = 0;
	viewed = false; compared = false; viewCeiling = 0; viewLast = 0; viewClean = false;
	opened.clean = false; opened.value = 0
}

init {
	do
	/* The node starts: the counters are opened. */
	:: atomic { phase == down && runs < STARTS ->
		runs++; phase = waiting;
		opened.clean = disk.clean; opened.value = disk.value;
		used = disk.value; limit = disk.value;
		if :: disk.value >= greatest -> behind = false :: else fi }
	/* It announces itself. Only the first answer says how the run before ended. */
	:: atomic { phase != down && starts < STARTS ->
		starts++;
		if
		:: behind && alone -> goto end	/* Those etags are known nowhere any more. */
		:: else -> alone = false; heard = true
		fi;
		if
		:: !viewed -> viewed = true; viewCeiling = ceiling; viewLast = last; viewClean = clean; start = starts
		:: viewed -> start = starts
		:: true -> skip	/* The answer is lost. */
		fi;
#ifndef KEEPS_CLEAN
		clean = false; last = 0
#endif
		}
	:: atomic { phase != down && viewed && !compared -> reconcile() }
	:: atomic { phase == waiting && (compared || !viewed) -> phase = serving }

	/* A block is reserved. */
	:: atomic { phase != down && writing == 0 && used + BLOCK <= MOST && limit < used + BLOCK -> writing = used + BLOCK }
#ifdef BEFORE_WRITE
	:: atomic { writing > limit -> limit = writing }
	:: atomic { writing != 0 && writing == limit -> write(false, writing); writing = 0 }
#else
	:: atomic { writing != 0 -> write(false, writing); limit = HIGHER(limit, writing); writing = 0 }
	/* The process is killed between the write and its return. */
	:: atomic { writing != 0 -> write(false, writing); stopped() }
#endif
	:: atomic { phase == serving && used < limit ->
		used++;
		printf("etag %d\n", used);
		assert(behind && !compared || used > greatest);
		alone = alone || !heard;
		if :: used > greatest -> greatest = used :: else fi }

	/* The ceiling rises in the background. */
	:: atomic { phase == serving && compared && ceiling < limit + STEP / 2 -> raiseTo = (limit / STEP + 2) * STEP }
	:: atomic { raiseTo != 0 -> ceiling = HIGHER(ceiling, raiseTo); raiseTo = 0 }

	/* A clean stop: the disk first, then the cluster. */
	:: atomic { phase != down && writing == 0 ->
		write(true, used);
		if
#ifdef STOP_UNCOMPARED
		:: start != 0 -> stopStart = start; stopLast = used
#else
		:: start != 0 && compared -> stopStart = start; stopLast = used
#endif
		:: true -> skip
		fi;
		stopped() }
	:: atomic { stopStart != 0 ->
		if
#ifdef NO_START_NUMBER
		:: true ->
#else
		:: stopStart == starts ->
#endif
			clean = true; last = stopLast; ceiling = HIGHER(ceiling, stopLast)
		:: stopStart != starts -> skip
		fi;
		stopStart = 0; stopLast = 0 }
	/* It is killed. */
	:: atomic { phase != down -> stopped() }

	/* Somebody copies the directory, and puts the copy back. */
	:: atomic { !copied -> copied = true; copy.clean = disk.clean; copy.value = disk.value }
	:: atomic { copied && !setBacks && phase == down -> setBacks = true; behind = true; disk.clean = copy.clean; disk.value = copy.value }
	od;
end:	skip
}

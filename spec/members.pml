/*
 * Voters whose data directories may be set back, and what the others remember of their
 * disks.
 *
 * Three voters. Logs are prefixes of one another as long as the promise holds, so a log
 * is its length. A node that starts greets the others, and neither votes nor asks for
 * votes before all that answer have accepted it. The copy of
 * one node's directory is taken at any time, and put back once, at any time while the
 * node is down.
 *
 * Code: cluster/witness (what is remembered and compared), cluster/transport (greetings,
 * the gate).
 *
 * Promises, as assertions:
 *   - a node that was set back does not vote while a member is up that has seen more of
 *     its disk;
 *   - unless a node voted while no such member was up, a leader has all that was
 *     committed.
 *
 * Left out: terms, votes and the numbers of starts that protect them, joining and tags,
 * watchers, messages that are lost between nodes that are up, a record of the witness that was not written yet when its node crashed, and
 * an operator who trusts the directory.
 *
 * Faults, each of which must be found:
 *   NO_GATE    a node votes before the others have accepted it
 *   NO_LENGTH  the others do not remember how far its log was
 *   FORGETS    a member forgets what it has seen when it restarts
 */

#define NODES   3
#define ENTRIES 2
#define CRASHES 3
#define NONE    9

mtype = { down, started, open, ended };
mtype phase[NODES];
byte length[NODES];	/* on the disk */
byte copyLength;	/* of node 0 */
bool copied, wasSetBack;
byte crashes;

/* What a member has seen of another's disk; by [member * NODES + other]. */
byte seen[NODES * NODES];
byte truth[NODES * NODES];		/* the same, and never forgotten */
bool accepted[NODES * NODES];		/* it has compared the other's present process */
#define SEEN(m, n) (m * NODES + n)

byte leader = NONE, committed;
bool unwitnessed;	/* a node that was set back voted, and no member that was up could tell */

byte i, k;	/* of one step; always reset */

#ifdef NO_LENGTH
#define SHORTER(m, n) false
#else
#define SHORTER(m, n) (length[n] < seen[SEEN(m, n)])
#endif
#define UP(n) (phase[n] == started || phase[n] == open)

/* stop ends node n's process. */
inline stop(n, how) {
	phase[n] = how;
	i = 0;
	do
	:: i < NODES -> accepted[SEEN(i, n)] = false; accepted[SEEN(n, i)] = false; i++
	:: else -> break
	od;
	i = 0;
	if :: leader == n -> leader = NONE :: else fi
}

/* sees remembers that another's disk had so many entries. */
inline sees(by, whose, entries) {
	if :: entries > seen[SEEN(by, whose)] -> seen[SEEN(by, whose)] = entries :: else fi;
	if :: entries > truth[SEEN(by, whose)] -> truth[SEEN(by, whose)] = entries :: else fi
}

/* compare is what a member does when it hears from another's process for the first time. */
inline compare(member, other) {
	if
	:: accepted[SEEN(member, other)] || !UP(member) || !UP(other) -> skip
	:: else ->
		if
		:: SHORTER(member, other) ->
			printf("%d refuses %d\n", member, other);
			stop(other, ended)
		:: else ->
			accepted[SEEN(member, other)] = true;
			if :: length[other] <= committed -> sees(member, other, length[other]) :: else fi
		fi
	fi
}

/* meet is a connection: each side compares the other. */
inline meet(caller, called) {
	compare(called, caller);
	compare(caller, called)
}

/* MAY_OPEN: all that are up have accepted node n, and with it they are a majority. */
#define ANSWERED(n, m) (!UP(m) || accepted[SEEN(m, n)])
#ifdef NO_GATE
#define MAY_OPEN(n, a, b) true
#else
#define MAY_OPEN(n, a, b) (ANSWERED(n, a) && ANSWERED(n, b) && (accepted[SEEN(a, n)] || accepted[SEEN(b, n)]))
#endif

/* opens lets node n vote. If others are up that have seen more of its disk, that is the
   fault; if none is, nobody can tell. */
inline opens(n, a, b) {
	phase[n] = open;
	if
	:: n == 0 && wasSetBack ->
		assert(!(UP(a) && truth[SEEN(a, n)] > length[n]));
		assert(!(UP(b) && truth[SEEN(b, n)] > length[n]));
		if
		:: length[n] < committed -> unwitnessed = true
		:: else
		fi
	:: else
	fi
}

/* replicate sends the leader's log to node n, which acknowledges it. */
inline replicate(n) {
	length[n] = length[leader];
	sees(leader, n, length[n]);
	if :: length[n] > committed -> committed = length[n] :: else fi;
	/* The follower knows what is committed, and that the leader has it. */
	sees(n, leader, committed)
}

/* elect makes node n the leader by the vote of v. */
inline elect(n, v) {
	printf("%d leads by the vote of %d\n", n, v);
	leader = n;
	assert(unwitnessed || length[n] >= committed)
}

#define CONNECTED(n, m) (accepted[SEEN(n, m)] && accepted[SEEN(m, n)])

init {
	byte n, m;
	/* All were started once, and know each other. */
	atomic {
		do
		:: n < NODES ->
			phase[n] = open;
			do
			:: m < NODES && m != n -> accepted[SEEN(n, m)] = true; m++
			:: m == n -> m++
			:: m == NODES -> break
			od;
			m = 0; n++
		:: else -> break
		od;
		n = 0
	}
	do
	:: atomic { select(n : 0 .. NODES - 1);
		if
		:: phase[n] == down -> phase[n] = started;
			printf("%d starts\n", n)
		:: phase[n] == started && MAY_OPEN(n, (n + 1) % NODES, (n + 2) % NODES) -> opens(n, (n + 1) % NODES, (n + 2) % NODES)
		:: UP(n) && crashes < CRASHES -> crashes++; stop(n, down);
#ifdef FORGETS
			k = 0;
			do
			:: k < NODES -> seen[SEEN(n, k)] = 0; k++
			:: else -> break
			od;
			k = 0;
#endif
			printf("%d crashes\n", n)
		:: else
		fi; n = 0 }
	:: atomic { select(n : 0 .. NODES - 1); select(m : 0 .. NODES - 1);
		if
		:: n != m && UP(n) && UP(m) && !(accepted[SEEN(m, n)] && accepted[SEEN(n, m)]) -> meet(n, m)
		:: n != m && leader == NONE && phase[n] == open && phase[m] == open && CONNECTED(n, m) && length[n] >= length[m] -> elect(n, m)
		:: n != m && leader == n && UP(m) && CONNECTED(n, m) && length[m] != length[n] -> replicate(m)
		/* A ping: what is committed is on both disks. */
		:: n != m && UP(n) && accepted[SEEN(m, n)] && length[n] >= committed && seen[SEEN(m, n)] < committed -> sees(m, n, committed)
		:: else
		fi; n = 0; m = 0 }
	:: atomic { leader != NONE && length[leader] < ENTRIES && length[leader] == committed -> length[leader]++ }
	:: atomic { !copied -> copied = true; copyLength = length[0] }
	:: atomic { copied && !wasSetBack && phase[0] == down -> wasSetBack = true; length[0] = copyLength;
		printf("0 is set back to %d entries\n", length[0]) }
	od
}

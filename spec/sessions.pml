/*
 * Sessions, forwarding, leader changes and the window of request ids.
 *
 * Two nodes take calls. Each gathers them into groups (here of one operation), one in
 * flight, and sends its group to the leader until it is answered or given up. The log
 * is Raft's, reduced to the paper's promises: a leader appends; an entry that a
 * majority has is committed; a new leader has all committed entries; what was not
 * committed may stay with an old leader alone, come back if that leads again before
 * anything of a later term is committed, or be replaced. A third voter, which takes no
 * calls, makes every majority possible. One entry is in flight at a time.
 *
 * A group that was sent and not certainly refused can reach a log at any later time,
 * and twice: messages are delayed, duplicated and lost.
 *
 * Two worlds are explored. WINDOW: call 0 has request id 1, at node 0; call 1 is its
 * retry, at node 1; call 2 has request id 2, at node 1. The window remembers one
 * request id. STARTS: call 2, and call 3 without a request id, at node 0, which
 * restarts once.
 *
 * Code: cluster/commit (groupsender.go, settle.go, session.go), fsm/sessions.go,
 * fsm/requests.go, cluster/transport (the bound on the commit index).
 *
 * Promises, as assertions:
 *   - an operation takes effect at most once on each node, whatever is sent again;
 *   - no two callers get one value, and one request id has one answer;
 *   - what was said not to be applied is never applied;
 *   - states at equal indexes are equal.
 *
 * Left out: groups of several operations, the encoding, removed members, snapshots
 * (the state is a function of the log), time: each wait may end at any point.
 *
 * Faults, each of which must be found:
 *   NO_RESULTS      the results of a session are forgotten before they are acknowledged
 *   NO_FLOOR        a retry is not asked whether the window reaches back to its first try
 *   LATE_FIRST      a first try is not asked that
 *   NO_SEQUENCE     a group that was acknowledged or given up is applied
 *   NO_SESSION      a group of an earlier start of its node is applied
 *   REQUEUE_TAINTED the operations of a group with a lost attempt go into a new group
 *   COMMIT_BEYOND   a follower applies up to the leader's commit index what the leader
 *                   has not sent it
 */

#define NODES   2
#define CALLS   4
#define ENTRIES 5	/* the longest log */
#define GROUPS  4
#define CHANGES 1	/* of the leader */
#define NONE    255

/* The log of the newest leader. An entry is a group's number, or one of: */
#define NOOP     100	/* of a new leader */
#define ANNOUNCE 101	/* + n: node n has started */
byte entry[ENTRIES + 1];
byte length, committed;
byte leader, changes, restarts;

/* A node's own log equals the leader's up to matched. own is what it wrote behind that
   as an earlier leader: 0, or one entry. */
byte matched[NODES], own[NODES];
byte applied[NODES];

/* The replicated state on each node. */
byte counter[NODES];
typedef Session { byte number, acknowledged, sequence, value };
typedef Machine { Session session[NODES]; byte key, value, index, floor, effects };
Machine state[NODES];

/* Groups, by number from 1. live: a copy may still reach a log. */
typedef Group { byte origin, session, sequence, call; bool live };
Group group[GROUPS + 1];
byte groups;

/* A node's gatherer. */
typedef Gatherer { byte session, next, current; bool tainted, appended };
Gatherer gatherer[NODES];

/* Calls. */
mtype = { idle, queued, sent, unknown, refused, expired, done };
mtype status[CALLS];
byte since[CALLS];	/* the index up to which the caller, or its node, knew the log */
bool denied[CALLS];	/* it was said not to be applied */
byte given[CALLS + 1];	/* by value: 1 + the request or call that has it */
byte answer[CALLS];	/* by request or call: its value */

#ifdef WINDOW
#define AT(call)      (call == 0 -> 0 : 1)
#else
#define AT(call)      0
#endif
#define KEY(call)     (call == 3 -> 0 : (call == 2 -> 2 : 1))
#define WHO(call)     (call == 3 -> 3 : (call == 2 -> 2 : 1))	/* callers, told apart */
#define RETRY(call)   (call == 1)

byte g, c, v, k, o, n_;	/* of one step; always reset. n_ is the node that applies */
bool yes;
inline reset() { g = 0; c = 0; v = 0; k = 0; o = 0; yes = false }

/* count counts an effect of call c on node n: one bit for each caller. */
inline effect(n) {
	k = 1 << WHO(c);
	assert((state[n].effects & k) == 0);
	assert(!denied[c]);
	state[n].effects = state[n].effects | k;
	counter[n]++;
	v = counter[n]
}

/* operation applies the operation of call c at index on node n; v is its value, 0 if it
   is refused because it may have been applied and forgotten. */
inline operation(n, at) {
	if
	:: KEY(c) != 0 && state[n].key == KEY(c) -> v = state[n].value
	:: KEY(c) != 0 && state[n].key != KEY(c) ->
		yes = (since[c] < state[n].floor);
#ifdef NO_FLOOR
		yes = yes && !RETRY(c);
#endif
#ifdef LATE_FIRST
		yes = yes && RETRY(c);
#endif
		if
		:: yes -> v = 0
		:: else ->
			effect(n);
			if :: state[n].key != 0 -> state[n].floor = state[n].index :: else fi;
			state[n].key = KEY(c); state[n].value = v; state[n].index = at
		fi
	:: KEY(c) == 0 -> effect(n)
	fi
}

#ifdef NO_SESSION
#define STALE_SESSION false
#else
#define STALE_SESSION (state[n_].session[o].number != group[g].session)
#endif
#ifdef NO_SEQUENCE
#define STALE_SEQUENCE false
#else
#define STALE_SEQUENCE (group[g].sequence <= state[n_].session[o].acknowledged)
#endif
#ifdef NO_RESULTS
#define HAS_RESULT false
#else
#define HAS_RESULT (state[n_].session[o].sequence == group[g].sequence)
#endif

/* applyGroup applies group g at index at on node n_. A leader answers its origin, or the
   answer is lost. */
inline applyGroup(at) {
	o = group[g].origin; c = group[g].call;
	if
	:: STALE_SESSION -> settled(false)
	:: !STALE_SESSION && STALE_SEQUENCE -> settled(false)
	:: else ->
		if
		:: HAS_RESULT -> v = state[n_].session[o].value
		:: else ->
			operation(n_, at);
			state[n_].session[o].sequence = group[g].sequence;
			state[n_].session[o].value = v
		fi;
		/* The group says that those before it are settled. */
		state[n_].session[o].acknowledged = group[g].sequence - 1;
		settled(true)
	fi
}

/* settled is the leader's answer to the origin of group g, if it still waits. */
inline settled(good) {
	if
	:: n_ == leader && gatherer[o].current == g && status[c] == sent ->
		if
		:: good && v != 0 -> take()
		:: good && v == 0 -> status[c] = expired; end()
		:: !good && !gatherer[o].tainted -> status[c] = queued; end()
		:: !good && gatherer[o].tainted -> status[c] = unknown; end()
		:: gatherer[o].tainted = true	/* The answer is lost. */
		fi
	:: else
	fi
}

/* take gives value v to the caller of call c. */
inline take() {
	printf("call %d gets %d\n", c, v);
	assert(given[v] == 0 || given[v] == 1 + WHO(c));
	assert(answer[WHO(c)] == 0 || answer[WHO(c)] == v);
	given[v] = 1 + WHO(c); answer[WHO(c)] = v;
	status[c] = done;
	end()
}

/* end settles the current group of gatherer o: the next may be cut. */
inline end() { gatherer[o].current = 0; gatherer[o].tainted = false; gatherer[o].appended = false }

/* applyEntry applies what node n_ has at the index behind the applied one. */
inline applyEntry(what) {
	if
	:: what == NOOP -> skip
	:: what >= ANNOUNCE ->
		o = what - ANNOUNCE;
		state[n_].session[o].number = applied[n_] + 1;
		state[n_].session[o].acknowledged = 0;
		state[n_].session[o].sequence = 0;
		state[n_].session[o].value = 0;
		/* The announcement's answer opens the node's own session. */
		if
		:: n_ == leader && gatherer[o].session == NONE -> gatherer[o].session = applied[n_] + 1; gatherer[o].next = 1
		:: else
		fi
	:: what < NOOP -> g = what; applyGroup(applied[n_] + 1)
	fi;
	applied[n_]++;
	equalStates();
	reset(); n_ = 0
}

inline equalStates() {
	if
	:: applied[0] == applied[1] ->
		assert(counter[0] == counter[1] && state[0].effects == state[1].effects);
		assert(state[0].key == state[1].key && state[0].value == state[1].value && state[0].floor == state[1].floor)
	:: else
	fi
}

/* catchUp applies on node n what it has of what is committed. That it may do so later
   makes no difference: a node that lags has not accepted the entries yet, and an answer
   that comes late is one that was lost. */
inline catchUp() {
	do
	:: applied[n] < committed && applied[n] < matched[n] -> n_ = n; applyEntry(entry[applied[n_] + 1])
	:: else -> break
	od
}

/* ask accepts a call at its node. */
inline ask(call) {
	status[call] = queued;
	/* A first try says how far its node had applied the log; its retry how far its caller
	   may have seen it before the first try. */
	if
	:: RETRY(call) -> since[call] = since[0]
	:: else -> since[call] = applied[AT(call)]
	fi
}

/* lead makes node n the leader. */
inline lead(n) {
	if
	:: n != leader ->
		/* What the old leader wrote and n has not is the old leader's alone. */
		if
		:: matched[leader] > matched[n] -> own[leader] = entry[matched[n] + 1]; matched[leader] = matched[n]
		:: else
		fi;
		do
		:: length > matched[n] -> entry[length] = 0; length--
		:: else -> break
		od;
		if
		:: own[n] != 0 -> length++; entry[length] = own[n]; matched[n] = length; own[n] = 0
		:: else
		fi;
		leader = n
	:: else
	fi;
	changes++;
	length++; entry[length] = NOOP; matched[n] = length;
	printf("node %d leads, its log ends at %d\n", n, length)
}

/* The entry in flight: one at a time. */
#define ROOM (length == committed && length < ENTRIES)

init {
	byte n, m;
	atomic {
		do
		:: n < CALLS -> status[n] = idle; n++
		:: else -> break
		od;
		/* Raft's first entry is its configuration. */
		n = 0; entry[1] = NOOP; length = 1; committed = 1;
		do
		:: n < NODES -> matched[n] = 1; applied[n] = 1; gatherer[n].next = 1; n++
		:: else -> break
		od;
		n = 0
	}
	do
	/* Callers. The retry comes at any time after the first try was sent. */
#ifdef WINDOW
	:: atomic { status[0] == idle -> ask(0) }
	:: atomic { status[1] == idle && status[0] != idle && status[0] != queued -> ask(1) }
#else
	:: atomic { status[3] == idle -> ask(3) }
	/* A caller in the queue is answered that nothing was applied. */
	:: atomic { status[3] == queued -> status[3] = refused; denied[3] = true }
#endif
	:: atomic { status[2] == idle -> ask(2) }

	/* A gatherer cuts a group and sends it. */
	:: atomic { select(m : 0 .. CALLS - 1);
		if
		:: status[m] == queued && gatherer[AT(m)].current == 0 && gatherer[AT(m)].session != NONE && groups < GROUPS ->
			n = AT(m); groups++;
			group[groups].origin = n; group[groups].session = gatherer[n].session;
			group[groups].sequence = gatherer[n].next; group[groups].call = m;
			group[groups].live = true;
			gatherer[n].next++; gatherer[n].current = groups;
			status[m] = sent
		:: else
		fi; n = 0; m = 0 }
	:: atomic { select(n : 0 .. NODES - 1);
		if
		:: gatherer[n].current != 0 ->
			g = gatherer[n].current; c = group[g].call; o = n;
			if
			/* The attempt is refused, with the guarantee that no log has it. */
			:: !gatherer[n].tainted && !gatherer[n].appended -> group[g].live = false; status[c] = queued; end()
			/* Its answer is lost. */
			:: !gatherer[n].tainted -> gatherer[n].tainted = true
#ifdef REQUEUE_TAINTED
			:: gatherer[n].tainted -> status[c] = queued; end()
#endif
			/* It is given up. */
			:: gatherer[n].tainted -> status[c] = unknown; end()
			fi
		:: else
		fi; reset(); n = 0 }

	/* A leader takes a group that was sent. */
	:: atomic { ROOM -> select(m : 1 .. GROUPS);
		if
		:: group[m].live ->
			length++; entry[length] = m; matched[leader] = length;
			if :: gatherer[group[m].origin].current == m -> gatherer[group[m].origin].appended = true :: else fi
		:: else
		fi; m = 0 }
	/* The other node accepts the next entry; a majority has the leader's. */
	:: atomic { matched[1 - leader] < length ->
		own[1 - leader] = 0; matched[1 - leader]++;
		n = 1 - leader; catchUp(); n = 0 }
	:: atomic { committed < length -> committed = length; n = leader; catchUp(); n = 1 - leader; catchUp(); n = 0 }
#ifdef COMMIT_BEYOND
	/* The other node hears that an entry is committed, and takes its own for it. */
	:: atomic { n = 1 - leader;
		if
		:: applied[n] < committed && applied[n] == matched[n] && own[n] != 0 -> n_ = n; applyEntry(own[n]); own[n] = 0
		:: else
		fi; n = 0 }
#endif

	/* Another leader, or the same one in a later term. It has all that is committed. */
	:: atomic { changes < CHANGES && length < ENTRIES -> select(n : 0 .. NODES - 1);
		if
		:: matched[n] >= committed -> lead(n)
		:: else
		fi; n = 0 }
#ifdef STARTS
	/* Node 0 restarts: its calls are lost, and it announces itself. */
	:: atomic { restarts == 0 && ROOM ->
		restarts++;
		o = 0; end(); o = 0;
		if :: status[0] == queued || status[0] == sent -> status[0] = unknown :: else fi;
		if :: status[3] == queued || status[3] == sent -> status[3] = unknown :: else fi;
		gatherer[0].session = NONE;
		length++; entry[length] = ANNOUNCE; matched[leader] = length }
#endif
	od
}

/*
 * The ranges of one HiLo tag: reservations, returns and merges.
 *
 * Each step is one operation on the replicated state, in the order of the log;
 * sessions.pml shows that each takes effect once. Two clients reserve ranges, use
 * their numbers from the lowest up, and give the rest back. A return that was sent
 * may be applied at any later time, and any number of times, because a caller
 * without a request id repeats it. A stranger sends returns that he has no right to.
 *
 * Code: hilo/counter.go (Next, Return, Set), fsm/merge.go (raisedHiLo).
 *
 * Promises, as assertions:
 *   - a range holds no number that a caller has, used, or set;
 *   - a range begins above what a merge or a set said to be taken;
 *   - a return frees only numbers that its sender had and did not use.
 *
 * Left out: sizes by time, limits of the caller, several tags, the last number
 * that a caller knows (last_max), and a client that
 * uses numbers which it has given back.
 *
 * Faults, each of which must be found:
 *   NO_TOKEN     a return is accepted without its token
 *   NO_PEAK      a range may end where a range ended before
 *   NOT_NEWEST   a return of a range that is not the newest is accepted
 *   LAST_BELOW   a return may name a last number below its range
 *   MERGE_KEEPS  a merge that leaves Max unchanged leaves the outstanding ranges too
 *   SET_KEEPS    a value that is set leaves the outstanding ranges
 */

#define N       6	/* the greatest number */
#define CLIENTS 2
#define RETURNS 2	/* returns that are sent in all */
#define CHAIN   2	/* MaxOutstanding */

/* What a return must fulfil, beside naming the range. */
#ifdef NOT_NEWEST
#define IS_NEWEST true
#else
#define IS_NEWEST (i + 1 == outstanding && high[i] == max_)
#endif
#ifdef NO_TOKEN
#define TOKEN_FITS(secret, checked) true
#else
#define TOKEN_FITS(secret, checked) (!checked || token[i] == secret)
#endif
#ifdef LAST_BELOW
#define LAST_FITS(used) true
#else
#define LAST_FITS(used) (used + 1 >= low[i])
#endif

#define FREE 0
#define USED 9		/* used, set, or merged; 1 to CLIENTS is who has it */

byte owner[N + 1];	/* of each number */
byte taken;		/* the greatest number that a merge or a set said to be taken */

/* hilo.Counter */
byte max_, peak;
byte low[CHAIN], high[CHAIN], token[CHAIN];
byte outstanding;	/* how many; the newest is last */
byte ranges;		/* how many were reserved; a range's token is its number */

/* What a client has: the numbers from next to end. None if token is 0. */
typedef Handle { byte low, next, end, token };
Handle client[CLIENTS];

/* Returns that were sent. */
typedef Message { byte begin, low, high, last, token, from; bool check };
Message sent[RETURNS];
byte returns;
byte merges, sets;

byte i, lo, hi;	/* of one step; always reset */

inline reset() { i = 0; lo = 0; hi = 0 }

/* drop forgets the oldest outstanding range. */
inline drop() {
	low[0] = low[1]; high[0] = high[1]; token[0] = token[1];
	low[1] = 0; high[1] = 0; token[1] = 0;
	outstanding--
}

inline dropAll() {
	do :: outstanding > 0 -> drop() :: else -> break od
}

/* reserve takes a range of the given size for client c. */
inline reserve(c, size) {
	lo = max_ + 1;
	hi = max_ + size;
#ifndef NO_PEAK
	if :: hi <= peak -> hi = peak + 1 :: else fi;
#endif
	if
	:: hi > N -> skip
	:: else ->
		if :: outstanding == CHAIN -> drop() :: else fi;
		ranges++;
		low[outstanding] = lo; high[outstanding] = hi; token[outstanding] = ranges;
		outstanding++;
		max_ = hi;
		if :: hi > peak -> peak = hi :: else fi;
		assert(lo > taken);
		i = lo;
		do
		:: i <= hi -> assert(owner[i] == FREE); owner[i] = c + 1; i++
		:: else -> break
		od;
		client[c].low = lo; client[c].next = lo; client[c].end = hi; client[c].token = ranges;
		printf("client %d reserves %d to %d, token %d\n", c, lo, hi, ranges)
	fi;
	reset()
}

/* giveBack applies a return: the numbers of a range above used come back. who is the
   client that sent it, CLIENTS for the stranger. */
inline giveBack(lowest, highest, used, secret, checked, who) {
	if
	:: outstanding > 0 ->
		i = 0;
		do
		:: i + 1 < outstanding && high[i] != highest -> i++
		:: else -> break
		od;
		if
		:: high[i] == highest && IS_NEWEST && TOKEN_FITS(secret, checked) && (!checked && lowest == 0 || low[i] == lowest) && LAST_FITS(used) && used <= highest ->
			printf("%d to %d come back from %d\n", used + 1, highest, who);
			lo = low[i];
			max_ = used;
			if
			:: used + 1 <= lo && outstanding == 2 ->
				low[1] = 0; high[1] = 0; token[1] = 0; outstanding = 1
			:: else -> dropAll()
			fi;
			i = used + 1;
			do
			:: i <= highest ->
				assert(who < CLIENTS && owner[i] == who + 1);
				owner[i] = FREE; i++
			:: else -> break
			od
		:: else
		fi
	:: else
	fi;
	reset()
}

/* merge raises the counter to what a backup or another cluster says. */
inline merge(to) {
	if :: to > taken -> taken = to :: else fi;
#ifdef MERGE_KEEPS
	if :: to > max_ -> dropAll() :: else fi;
#else
	do
	:: outstanding > 0 && low[0] <= to -> drop()
	:: else -> break
	od;
#endif
	printf("a merge to %d\n", to);
	i = 1;
	do
	:: i <= to -> if :: owner[i] == FREE -> owner[i] = USED :: else fi; i++
	:: else -> break
	od;
	if :: to > max_ -> max_ = to :: else fi;
	if :: max_ > peak -> peak = max_ :: else fi;
	reset()
}

/* set is the call of a client that runs the algorithm itself: it read max_, and has the
   numbers from there to the value. */
inline set(value) {
	printf("a client sets %d\n", value);
	i = max_ + 1;
	do
	:: i <= value -> assert(owner[i] == FREE); owner[i] = USED; i++
	:: else -> break
	od;
	max_ = value;
	if :: value > taken -> taken = value :: else fi;
	if :: value > peak -> peak = value :: else fi;
#ifndef SET_KEEPS
	dropAll();
#endif
	reset()
}

/* use takes one number of what client c has. */
inline use(c) {
	assert(owner[client[c].next] == c + 1);
	owner[client[c].next] = USED;
	client[c].next++;
	if
	:: client[c].next > client[c].end -> client[c].low = 0; client[c].next = 0; client[c].end = 0; client[c].token = 0
	:: else
	fi
}

/* send gives the rest of a range back. The client uses it no longer. One without a token
   names the range by its end alone, as RavenDB's clients do. */
inline send(c, withToken) {
	sent[returns].begin = client[c].low;
	sent[returns].check = withToken;
	if :: withToken -> sent[returns].low = client[c].low; sent[returns].token = client[c].token :: else fi;
	sent[returns].high = client[c].end;
	sent[returns].last = client[c].next - 1;
	sent[returns].from = c;
	returns++;
	client[c].low = 0; client[c].next = 0; client[c].end = 0; client[c].token = 0
}

init {
	byte c, m, to;
	do
	:: atomic { select(c : 0 .. CLIENTS - 1);
		if
		:: client[c].token == 0 -> if :: reserve(c, 1) :: reserve(c, 2) fi
		:: client[c].token != 0 -> use(c)
		:: client[c].token != 0 && returns < RETURNS -> if :: send(c, true) :: send(c, false) fi
		fi; c = 0 }
	:: atomic { returns > 0 -> select(m : 0 .. RETURNS - 1);
		if
		:: m < returns -> giveBack(sent[m].low, sent[m].high, sent[m].last, sent[m].token, sent[m].check, sent[m].from)
		:: else
		fi; m = 0 }
	/* The stranger knows all but the token. */
	:: atomic { outstanding > 0 -> giveBack(low[outstanding - 1], high[outstanding - 1], low[outstanding - 1] - 1, 0, true, CLIENTS) }
	/* A sender that names a last number below its range. */
	:: atomic { returns > 0 && sent[0].begin > 1 -> giveBack(0, sent[0].high, 0, 0, false, sent[0].from) }
	:: atomic { merges < 1 -> merges++; if :: true -> merge(2) :: true -> merge(4) fi }
	:: atomic { sets < 1 && max_ + 2 <= N -> sets++; if :: to = max_ :: to = max_ + 2 fi; set(to); to = 0 }
	:: atomic { ranges >= 4 -> break }
	od
}

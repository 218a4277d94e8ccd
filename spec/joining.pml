/*
 * Joining: tags, the tokens that let a node in, removal, and the etags that nodes give
 * under their tags.
 *
 * Three data directories, each with an id of its own. 0 and 1 ask for the same tag, as a
 * node that lost its data does, or two by an operator's slip; 2 asks for any. 0 has a right
 * to join, 1 and 2 have the same token. A message to join may be applied any number of
 * times, at any time, or never. A member is removed at any time, and goes on giving etags
 * until it stops: it may be cut off. The directory of 0 is set back to a copy once.
 *
 * Code: fsm/memberadd.go, fsm/members.go, fsm/jointokens.go; server/etags (where etags go
 * on).
 *
 * Promises, as assertions:
 *   - the etags under one tag are of one directory, and rise;
 *   - a token lets in one directory.
 *
 * Left out: the end of a token's time, announcements of starts, votes, the tags of a merged
 * backup and the floors of their etags. A disk that was set back starts only as a present
 * member that the cluster has answered: docs/promises.md names the other cases as exceptions,
 * and etags.pml has them.
 *
 * Faults, each of which must be found:
 *   TAG_WHERE_ASKED    the node that is asked judges whether a tag is free, not the state
 *   TAG_FREED          a removal frees the tag
 *   TOKEN_WHERE_ASKED  the node that is asked judges the token, not the state
 *   TOKEN_KEPT         a token that was used stays
 *   COMES_BACK         a removed member may join again under its id
 */

#define DIRS 3
#define TAGS 3
#define MOST 3	/* etags of one directory */
#define NONE 9

/* The state: fsm.members and fsm.joinTokens. */
byte owner[TAGS] = NONE;	/* the directory that a tag was given to */
byte tagOf[DIRS] = NONE;
bool removed[DIRS];
byte record[DIRS];		/* the ceiling of its etags */
bool token = true;

/* The messages to join, with what the node that was asked chose. */
bool asked[DIRS];
byte chosen[DIRS];

/* The directories: the tag as the node has it, and the etags it gave. */
byte tag[DIRS] = NONE;
byte given[DIRS];
bool runs[DIRS];
bool copied, setBack, behind;
byte copyTag, copyGiven;

/* What the world knows. */
byte giver[TAGS] = NONE;
byte greatest[TAGS];
byte letIn = NONE;	/* by the token */

byte d, t;	/* of one step; always reset */

#define WANTS(n)      (n < 2)	/* tag 0 */
#define USES_TOKEN(n) (n > 0)
#define PRESENT(n)    (tagOf[n] != NONE && !removed[n])

/* pick is the tag that directory n gets now, or NONE. */
inline pick(n) {
	t = 0;
	do
	:: t < TAGS && owner[t] != NONE && !WANTS(n) -> t++
	:: else -> break
	od;
	if
	:: t == TAGS -> t = NONE
	:: t < TAGS && owner[t] != NONE -> t = NONE
	:: else
	fi
}

/* ask is a node's first try. What it is told there counts for nothing, but in a fault. */
inline ask(n) {
	pick(n);
	if
#ifdef TAG_WHERE_ASKED
	:: t == NONE -> skip
#endif
#ifdef TOKEN_WHERE_ASKED
	:: USES_TOKEN(n) && !token -> skip
#endif
	:: else -> asked[n] = true; chosen[n] = t
	fi;
	t = 0
}

/* join applies the message of directory n. */
inline join(n) {
	if
	:: removed[n] ->
#ifdef COMES_BACK
		removed[n] = false
#else
		skip
#endif
	:: !removed[n] && tagOf[n] != NONE -> skip
#ifndef TOKEN_WHERE_ASKED
	:: tagOf[n] == NONE && USES_TOKEN(n) && !token -> skip
#endif
	:: else ->
#ifdef TAG_WHERE_ASKED
		t = chosen[n];
#else
		pick(n);
#endif
		if
		:: t == NONE -> skip
		:: else ->
			printf("%d joins with tag %d\n", n, t);
			tagOf[n] = t; owner[t] = n;
			if
			:: USES_TOKEN(n) ->
				assert(letIn == NONE);
				letIn = n;
#ifndef TOKEN_KEPT
				token = false
#endif
			:: else
			fi
		fi;
		t = 0
	fi
}

/* remove makes a member a removed one, whose record of etags is dropped. */
inline remove(n) {
	printf("%d is removed\n", n);
	removed[n] = true; record[n] = 0;
#ifdef TAG_FREED
	owner[tagOf[n]] = NONE
#endif
}

/* give gives one etag. A present member has its ceiling raised first. */
inline give(n) {
	given[n]++;
	if :: PRESENT(n) && given[n] > record[n] -> record[n] = given[n] :: else fi;
	assert(giver[tag[n]] == NONE || giver[tag[n]] == n);
	assert(given[n] > greatest[tag[n]]);
	giver[tag[n]] = n; greatest[tag[n]] = given[n]
}

init {
	do
	:: atomic { select(d : 0 .. DIRS - 1);
		if
		:: !asked[d] -> ask(d)
		:: asked[d] -> join(d)
		:: PRESENT(d) -> remove(d)
		/* The answer: the node keeps its tag. */
		:: PRESENT(d) && tag[d] == NONE -> tag[d] = tagOf[d]
		:: tag[d] != NONE && !runs[d] && PRESENT(d) -> runs[d] = true;
			if :: d == 0 -> behind = false :: else fi;
			if :: record[d] > given[d] -> given[d] = record[d] :: else fi
		/* A start without the cluster. */
		:: tag[d] != NONE && !runs[d] && !(d == 0 && behind) -> runs[d] = true
		:: runs[d] -> runs[d] = false
		:: runs[d] && given[d] < MOST -> give(d)
		:: else
		fi; d = 0 }
	:: atomic { !copied -> copied = true; copyTag = tag[0]; copyGiven = given[0] }
	:: atomic { copied && !setBack && !runs[0] -> setBack = true; behind = true;
		tag[0] = copyTag; given[0] = copyGiven; printf("0 is set back\n") }
	od
}

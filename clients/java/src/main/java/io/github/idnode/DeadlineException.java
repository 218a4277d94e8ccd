package io.github.idnode;

/**
 * The time was over while the call waited for a HiLo range, a Snowflake id, a connection or the answer to a read: nothing was taken. Or that of
 * closing a client, with numbers to give back.
 */
public final class DeadlineException extends IdnodeException { DeadlineException(Problem p) { super(p); } }

package io.github.idnode;

/** The caller's time to wait for a HiLo range or a Snowflake id was over: none was taken. Or that of closing a client, with numbers to give back. */
public final class DeadlineException extends IdnodeException { DeadlineException(Problem p) { super(p); } }

package io.github.idnode;

/** The caller's time to wait for a HiLo range was over: no number was taken. Or that of closing a client, with numbers to give back. */
public final class DeadlineException extends IdnodeException { DeadlineException(Problem p) { super(p); } }

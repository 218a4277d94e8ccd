package io.github.idnode;

/** A try of the call may have taken effect. Repeating it with {@link #requestId} counts once. */
public final class OutcomeUnknownException extends IdnodeException { OutcomeUnknownException(Problem p) { super(p); } }

package io.github.idnode;

/** The series was restored, and gives no numbers until somebody has looked into the books. */
public final class SeriesSuspendedException extends IdnodeException { SeriesSuspendedException(Problem p) { super(p); } }

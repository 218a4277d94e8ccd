package io.github.idnode;

/** A disk of the cluster is nearly full. Nothing happened. */
public final class StorageFullException extends IdnodeException { StorageFullException(Problem p) { super(p); } }

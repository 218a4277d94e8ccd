package io.github.idnode;

import java.time.Duration;

record SeenEvent(Kind kind, String node, int attempt, Duration duration, IdnodeException error) implements Event {}

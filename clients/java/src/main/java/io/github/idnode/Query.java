package io.github.idnode;

import java.util.Map;

// What a node is asked, in which trace, null for none, and of which cluster it must be, empty for any.
record Query(String method, Map<String, ?> fields, String traceparent, String cluster) {}

package io.github.idnode;

import static io.github.idnode.Background.MS;

import java.util.function.BooleanSupplier;

// Watches whether the node of one try is silent to all. The try asks it now and then, and goes elsewhere then.
//
// To send the call elsewhere unasked, as a hedge ("The Tail at Scale", Dean and Barroso 2013), would double the load of a
// cluster that is only slow. The question writes nothing, and all calls share it. A node that writes slowly answers it, so
// a call is sent again for a node that stands still, and for no other reason.
final class Silence implements BooleanSupplier {
  private static final long SLOW = 300 * MS; // When a try without an answer asks. A younger one goes on.
  private final Router router;
  private final Node node;
  private final long young = System.nanoTime() + SLOW;
  private long ask = young;
  private Look look; // Null while the try asks nothing.

  Silence(Router router, Node node) {
    this.router = router;
    this.node = node;
  }

  // How long nothing but an answer of the node can change what is known.
  long pause() { return Math.max(look == null ? ask - System.nanoTime() : 0, Connection.STEP * MS); }

  @Override
  public boolean getAsBoolean() {
    var now = System.nanoTime();
    if (look == null && now - ask >= 0) look = router.look(Router.LOOK_AGAIN);
    if (look != null && (look.heardOf(node) || look.over())) {
      look = null;
      ask = now + SLOW;
    }
    return look != null && look.silent(node) || now - young >= 0 && router.leadsElsewhere(node);
  }
}

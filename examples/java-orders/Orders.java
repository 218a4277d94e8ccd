import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.github.idnode.CallOptions;
import io.github.idnode.IdnodeClient;
import io.github.idnode.IdnodeException;
import io.github.idnode.InvalidException;
import io.github.idnode.RequestIdExpiredException;
import io.github.idnode.RequestIdReusedException;
import io.github.idnode.jpa.IdnodeListener;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.Persistence;
import javax.persistence.RollbackException;

/** A web service that takes orders, each of which gets a number of its own from idnode. README.md shows it. */
public class Orders {
  private static final Pattern KEY = Pattern.compile("[A-Za-z0-9._-]{1,48}"); // A request id has at most 64 bytes.
  private static final Pattern BODY = Pattern.compile("\\s*\\{\\s*\"customer\"\\s*:\\s*\"([^\"\\\\\\p{Cntrl}]{1,100})\"\\s*}\\s*");
  private final IdnodeClient ids = IdnodeClient.fromEnv();
  private final EntityManagerFactory books = Persistence.createEntityManagerFactory("orders");

  public static void main(String[] args) throws IOException {
    new Orders().serve(Integer.parseInt(System.getenv().getOrDefault("PORT", "8080")));
  }

  private void serve(int port) throws IOException {
    IdnodeListener.use(ids, books);
    // What was stored without a number when the service ended gets its number now.
    all().stream().filter(order -> order.number == null).forEach(this::numberOrSkip);
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.setExecutor(Executors.newFixedThreadPool(16));
    server.createContext("/orders", this::answer);
    server.start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      server.stop(1);
      books.close();
      ids.close();
    }));
    System.out.println("ready");
  }

  private void answer(HttpExchange exchange) throws IOException {
    var status = 200;
    String body;
    try {
      body = exchange.getRequestMethod().equals("POST")
          ? place(exchange).json() : all().stream().map(Order::json).collect(Collectors.joining(",", "[", "]"));
    } catch (IllegalArgumentException e) {
      status = 400;
      body = "{\"error\":\"" + e.getMessage() + "\"}";
    } catch (IdnodeException e) {
      status = refused(e) ? 500 : 503; // The same call later gives the order its number.
      body = "{\"error\":\"" + e.reason() + "\"}";
    }
    var bytes = body.getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
    exchange.close();
  }

  private Order place(HttpExchange exchange) throws IOException {
    var key = exchange.getRequestHeaders().getFirst("Idempotency-Key");
    var body = BODY.matcher(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
    if (key == null || !KEY.matcher(key).matches() || !body.matches()) {
      throw new IllegalArgumentException("an order has a customer, and a header Idempotency-Key of 1 to 48 letters, digits, dots, _ and -");
    }
    var order = find(key);
    if (order == null) order = store(new Order(key, body.group(1)));
    return order.number == null ? number(order) : order;
  }

  private Order store(Order order) {
    try {
      return inBooks(store -> {
        store.persist(order);
        return order;
      });
    } catch (RollbackException e) { // The same call was here at the same time.
      var other = find(order.cart);
      if (other == null) throw e;
      return other;
    }
  }

  private void numberOrSkip(Order order) {
    try {
      number(order);
    } catch (IdnodeException e) {
      if (!refused(e)) throw e;
      System.err.println("the order " + order.cart + " gets no number: " + e.getMessage()); // For good. The others get theirs.
    }
  }

  private static boolean refused(IdnodeException e) {
    return e instanceof InvalidException || e instanceof RequestIdReusedException || e instanceof RequestIdExpiredException;
  }

  // The service's name and the order's key are the request id of the call: whoever repeats it, a caller or the service after a crash,
  // gets the same number.
  private Order number(Order order) {
    var number = ids.identity("orders").next(new CallOptions().withRequestId("java-orders-" + order.cart));
    return inBooks(store -> {
      var stored = store.find(Order.class, order.id);
      stored.number = number;
      return stored;
    });
  }

  private Order find(String cart) {
    return inBooks(store -> store.createQuery("select o from Order o where o.cart = :cart", Order.class).setParameter("cart", cart)
        .getResultList().stream().findFirst().orElse(null));
  }

  private List<Order> all() { return inBooks(store -> store.createQuery("select o from Order o", Order.class).getResultList()); }

  private <T> T inBooks(Function<EntityManager, T> work) {
    var store = books.createEntityManager();
    try {
      store.getTransaction().begin();
      var done = work.apply(store);
      store.getTransaction().commit();
      return done;
    } finally {
      if (store.getTransaction().isActive()) store.getTransaction().rollback();
      store.close();
    }
  }
}

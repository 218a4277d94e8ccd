import io.github.idnode.IdnodeClient;
import io.github.idnode.jpa.IdnodeId;
import io.github.idnode.jpa.IdnodeListener;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import javax.persistence.CascadeType;
import javax.persistence.Embeddable;
import javax.persistence.Embedded;
import javax.persistence.Entity;
import javax.persistence.EntityListeners;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.Id;
import javax.persistence.ManyToOne;
import javax.persistence.MappedSuperclass;
import javax.persistence.Persistence;

/** Stores an entity of each type of id in each way, whose id is empty, or taken by a row that was imported. */
public class Ways {
  @MappedSuperclass
  @EntityListeners(IdnodeListener.class)
  public abstract static class Row {
    String name = "new";

    abstract Object id();

    abstract void empty();
  }

  @Entity(name = "Long0")
  public static class Long0 extends Row {
    @Id @IdnodeId(tag = "ways") long id;
    Object id() { return id; }
    void empty() { id = 0; }
  }

  @Entity(name = "Int0")
  public static class Int0 extends Row {
    @Id @IdnodeId(identity = "ways") int id;
    Object id() { return id; }
    void empty() { id = 0; }
  }

  @Entity(name = "Boxed")
  public static class Boxed extends Row {
    @Id @IdnodeId(snowflake = "ways") Long id;
    Object id() { return id; }
    void empty() { id = null; }
  }

  @Entity(name = "BoxedInt")
  public static class BoxedInt extends Row {
    @Id @IdnodeId(tag = "boxed") Integer id;
    @IdnodeId(identity = "numbers") String number; // Beside the id.
    Object id() { return id; }
    void empty() { id = null; number = ""; }
  }

  @Entity(name = "Text")
  public static class Text extends Row {
    @Id @IdnodeId(identity = "texts") String id;
    Object id() { return id; }
    void empty() { id = null; }
  }

  /** Stores another one with it. */
  @Entity(name = "Other")
  public static class Other extends Row {
    @Id @IdnodeId String id;
    @ManyToOne(cascade = CascadeType.ALL) Long0 first;
    @ManyToOne(cascade = CascadeType.ALL) Int0 second;
    @ManyToOne(cascade = CascadeType.ALL) Boxed third;
    @ManyToOne(cascade = CascadeType.ALL) BoxedInt fourth;
    @ManyToOne(cascade = CascadeType.ALL) Text fifth;
    Object id() { return id; }
    void empty() { id = null; }
    Other with(Row row) {
      if (row instanceof Long0 one) first = one;
      if (row instanceof Int0 one) second = one;
      if (row instanceof Boxed one) third = one;
      if (row instanceof BoxedInt one) fourth = one;
      if (row instanceof Text one) fifth = one;
      return this;
    }
  }

  /** Cannot be filled. */
  @Entity(name = "Wrong")
  @EntityListeners(IdnodeListener.class)
  public static class Wrong {
    @Id String id = "set";
    @IdnodeId java.util.UUID other;
  }

  /** Has an id that nobody fills. */
  @Embeddable
  public static class Part {
    @IdnodeId String number;
  }

  @Entity(name = "Whole")
  @EntityListeners(IdnodeListener.class)
  public static class Whole {
    @Id @IdnodeId String id;
    @Embedded Part part;
  }

  private record Way(String name, BiConsumer<EntityManager, Row> store) {}

  private static final List<Way> WAYS = List.of(
      new Way("persist", EntityManager::persist),
      new Way("merge", EntityManager::merge),
      new Way("cascade persist", (store, row) -> store.persist(new Other().with(row))),
      new Way("cascade merge", (store, row) -> store.merge(new Other().with(row))),
      new Way("batch", (store, row) -> { for (var i = 0; i < 30; i++) store.persist(i == 0 ? row : like(row)); }),
      new Way("copy", (store, row) -> {
        store.persist(row);
        store.flush();
        store.detach(row);
        row.empty();
        store.persist(row);
      }),
      new Way("stored again", (store, row) -> { // After a transaction that was rolled back.
        store.persist(row);
        store.flush();
        store.getTransaction().rollback();
        store.clear();
        store.getTransaction().begin();
        store.persist(row);
      }));

  private static final List<Supplier<Row>> TYPES = List.of(Long0::new, Int0::new, Boxed::new, BoxedInt::new, Text::new);

  private static Row like(Row row) {
    try {
      return row.getClass().getDeclaredConstructor().newInstance();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  public static void main(String[] nodes) {
    try (var ids = new IdnodeClient(List.of(nodes))) {
      var factory = Persistence.createEntityManagerFactory("ways");
      var parts = Persistence.createEntityManagerFactory("parts");
      for (var wrong : List.of(factory, parts)) {
        try {
          IdnodeListener.use(ids, wrong);
        } catch (IllegalStateException e) {
          System.out.println(e.getMessage());
        }
      }
      parts.close();
      IdnodeListener.use(ids);
      for (var type : TYPES) for (var way : WAYS) empty(factory, way, type.get());
      for (var type : List.<Supplier<Row>>of(Long0::new, Int0::new, Text::new)) for (var way : WAYS) taken(factory, ids, way, type.get());
      factory.close();
    }
  }

  private static long count(EntityManagerFactory factory, String of, String where) {
    var store = factory.createEntityManager();
    var n = store.createQuery("select count(r) from " + of + " r where " + where, Long.class).getSingleResult();
    store.close();
    return n;
  }

  // Each way stores its rows, and none without an id.
  private static void empty(EntityManagerFactory factory, Way way, Row row) {
    var type = row.getClass().getSimpleName();
    var text = row instanceof Text;
    var before = count(factory, type, "1 = 1");
    var outcome = store(factory, way, row);
    var stored = count(factory, type, "1 = 1") - before;
    var without = count(factory, type, text ? "r.id is null or r.id = ''" : "r.id = 0");
    if (row instanceof BoxedInt) without += count(factory, type, "r.number is null or r.number not like 'numbers/%'");
    if (!outcome.isEmpty() || without > 0 || stored != (way.name.equals("batch") ? 30 : way.name.equals("copy") ? 2 : 1)) {
      System.out.println(type + " " + way.name + ": stored " + stored + ", " + without + " without an id " + outcome);
    }
  }

  // Each way fails, and the rows that have the ids stay.
  private static void taken(EntityManagerFactory factory, IdnodeClient ids, Way way, Row row) {
    var type = row.getClass().getSimpleName();
    var next = row instanceof Long0 ? ids.hilo("ways").next().value() : ids.identity(row instanceof Text ? "texts" : "ways").next();
    var store = factory.createEntityManager();
    store.getTransaction().begin();
    for (var i = next; i < next + 32; i++) {
      store.createNativeQuery("insert into " + type + " (id, name) values (" + (row instanceof Text ? "'texts/" + i + "'" : i) + ", 'imported')").executeUpdate();
    }
    store.getTransaction().commit();
    store.close();
    var before = count(factory, type, "r.name = 'imported'");
    var rows = count(factory, type, "1 = 1");
    var outcome = store(factory, way, row);
    if (outcome.isEmpty() || count(factory, type, "r.name = 'imported'") != before || count(factory, type, "1 = 1") != rows) {
      System.out.println(type + " " + way.name + " with an id that is taken: " + outcome);
    }
    store = factory.createEntityManager(); // What the way did not use is free again.
    store.getTransaction().begin();
    store.createNativeQuery("delete from " + type + " where name = 'imported'").executeUpdate();
    store.getTransaction().commit();
    store.close();
  }

  // How it failed; empty if it did not.
  private static String store(EntityManagerFactory factory, Way way, Row row) {
    var store = factory.createEntityManager();
    try {
      store.getTransaction().begin();
      way.store.accept(store, row);
      store.getTransaction().commit();
      return "";
    } catch (RuntimeException e) {
      if (store.getTransaction().isActive()) store.getTransaction().rollback();
      return e.toString().lines().findFirst().get();
    } finally {
      store.close();
    }
  }
}

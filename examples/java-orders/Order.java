import io.github.idnode.jpa.IdnodeId;
import io.github.idnode.jpa.IdnodeListener;
import javax.persistence.Column;
import javax.persistence.Entity;
import javax.persistence.EntityListeners;
import javax.persistence.Id;
import javax.persistence.Table;

/** An order. Its id comes when it is stored, and its number afterwards. */
@Entity
@Table(name = "orders")
@EntityListeners(IdnodeListener.class)
public class Order {
  @Id @IdnodeId String id;
  @Column(unique = true) String cart; // The caller's key.
  String customer;
  @Column(name = "order_number", unique = true) Long number; // Null until it is given.

  protected Order() {}

  Order(String cart, String customer) {
    this.cart = cart;
    this.customer = customer;
  }

  String json() {
    return String.format("{\"id\":\"%s\",\"key\":\"%s\",\"customer\":\"%s\",\"number\":\"%s\"}", id, cart, customer, number == null ? "" : number);
  }
}

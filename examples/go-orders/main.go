// Command go-orders is a web service that stores orders in SQLite by GORM: idnode gives each its id and its
// number, whatever happens to the cluster's nodes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/gormid"
)

// Order is a row of the table orders.
type Order struct {
	ID     string `gorm:"primaryKey" idnode:"hilo:orders" json:"id"`          // orders/65-A
	Number int64  `gorm:"uniqueIndex" idnode:"identity:orders" json:"number"` // 1, 2, 3 …
	Ref    string `gorm:"uniqueIndex;not null" json:"ref"`                    // the caller's own, so that a request counts once
	Text   string `gorm:"not null;check:text <> ''" json:"text"`
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address of the service")
	file := flag.String("db", "orders.db", "file of the database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *file); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends. Then it ends the requests, and gives back the unused numbers.
func run(ctx context.Context, listen, file string) (err error) {
	cfg, err := client.ConfigFromEnv() // IDNODE_ENDPOINTS and the like
	if err != nil {
		return err
	}
	cfg.Logger, cfg.FailFastAfter = slog.Default(), time.Minute
	c, err := client.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.Background())) }()
	db, err := open(file, c)
	if err != nil {
		return err
	}
	lis, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", lis.Addr())
	server := &http.Server{Handler: routes(db), ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// open opens the database, and makes its table.
func open(file string, c *client.Client) (*gorm.DB, error) {
	db, err := gorm.Open(sqlite.Open(file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)"), &gorm.Config{TranslateError: true})
	if err != nil {
		return nil, err
	}
	return db, errors.Join(db.Use(gormid.Plugin{Client: c, Models: []any{&Order{}}}), db.AutoMigrate(&Order{}))
}

func routes(db *gorm.DB) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var o Order
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&o); err != nil || o.Ref == "" || o.Text == "" {
			http.Error(w, "an order has a ref and a text", http.StatusBadRequest)
			return
		}
		o.ID, o.Number = "", 0 // They are idnode's to give.
		if err := create(db.WithContext(r.Context()), &o); err != nil {
			fail(w, err)
			return
		}
		answer(w, http.StatusCreated, o)
	})
	mux.HandleFunc("GET /orders/{ref}", func(w http.ResponseWriter, r *http.Request) {
		var o Order
		if err := db.WithContext(r.Context()).First(&o, "ref = ?", r.PathValue("ref")).Error; err != nil {
			fail(w, err)
			return
		}
		answer(w, http.StatusOK, o)
	})
	return mux
}

// errTaken is the error where another order has the id or the number, such as one that was imported.
var errTaken = errors.New("another order has the number")

// create stores an order. gorm.ErrDuplicatedKey means that its ref has one.
func create(db *gorm.DB, o *Order) error {
	err := db.Create(o).Error
	if !errors.Is(err, gorm.ErrDuplicatedKey) {
		return err
	}
	var stored int64
	if err := db.Model(&Order{}).Where("ref = ?", o.Ref).Count(&stored).Error; err != nil {
		return err
	}
	if stored == 0 {
		return errTaken
	}
	return err
}

func answer(w http.ResponseWriter, code int, o Order) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o) // The caller may be gone.
}

// fail says what a caller can do about an error.
func fail(w http.ResponseWriter, err error) {
	failed := new(client.Error)
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		http.Error(w, "there is no such order", http.StatusNotFound)
	case errors.Is(err, gorm.ErrDuplicatedKey):
		http.Error(w, "the ref has an order: get it", http.StatusConflict)
	case errors.Is(err, errTaken): // The next try gets the next number.
		w.Header().Set("Retry-After", "1")
		http.Error(w, "another order has the number: send it again", http.StatusServiceUnavailable)
	case errors.As(err, &failed): // Nothing is stored; at most a number stays unused.
		w.Header().Set("Retry-After", "1")
		http.Error(w, "no number can be had now", http.StatusServiceUnavailable)
	default:
		http.Error(w, "the order is not stored", http.StatusInternalServerError)
	}
	slog.Warn("a request has failed", "error", err)
}

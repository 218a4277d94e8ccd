package gormid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/gormid"
)

// endpoint is the gRPC address of a node that runs during the tests, and program the file of idnode.
var endpoint, program string

func TestMain(m *testing.M) {
	os.Exit(withNode(m.Run))
}

// withNode builds the program and runs a node of its own.
func withNode(run func() int) int {
	dir, err := os.MkdirTemp("", "gormid")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "idnode")
	build := exec.Command("go", "build", "-o", program, "./cmd/idnode")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		log.Fatalf("%v: %s", err, out)
	}
	free := addresses(3)
	endpoint = free[0]
	node := exec.Command(program, "serve", "--single-node", "--tag", "A", "--data-dir", filepath.Join(dir, "A"),
		"--grpc", endpoint, "--raft", free[1], "--http", free[2])
	var said bytes.Buffer
	node.Stderr = &said
	if err := node.Start(); err != nil {
		log.Fatal(err)
	}
	var stops atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := node.Wait(); !stops.Load() {
			log.Fatalf("the node ended: %v: %s", err, said.Bytes()) // In place of calls that wait for it.
		}
	}()
	defer func() {
		stops.Store(true)
		_ = node.Process.Kill() // It may have ended.
		<-ended
	}()
	return run()
}

// addresses returns n at which nobody listens, below the ports that Linux gives to outgoing
// connections.
func addresses(n int) (free []string) {
	for port := 19_000; len(free) < n && port < 20_000; port++ {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if lis, err := net.Listen("tcp", address); err == nil {
			_ = lis.Close()
			free = append(free, address)
		}
	}
	if len(free) < n {
		log.Fatal("no port is free")
	}
	return free
}

type User struct {
	ID   string `gorm:"primaryKey" idnode:"hilo:users"`
	Name string
}

type Order struct {
	ID     uint64 `gorm:"primaryKey" idnode:"hilo:orders"`
	Number int64  `idnode:"identity:orders"`
	Text   string `idnode:"identity:texts"`
}

// open returns a database in memory whose ids come from the node.
func open() (*gorm.DB, *client.Client, error) {
	c, err := client.New(context.Background(), client.Config{Endpoints: []string{endpoint}})
	if err != nil {
		return nil, nil, err
	}
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, nil, err
	}
	return db, c, errors.Join(db.Use(gormid.Plugin{Client: c}), db.AutoMigrate(&User{}, &Order{}, &Wrong{}))
}

func opened(t *testing.T) *gorm.DB {
	t.Helper()
	db, c, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return db
}

func Example() {
	db, c, err := open() // db.Use(gormid.Plugin{Client: c})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(context.Background())
	users := []User{{Name: "Ada"}, {Name: "Grace"}, {ID: "users/mine", Name: "Edsger"}}
	if err := db.Create(&users).Error; err != nil {
		log.Fatal(err)
	}
	for _, u := range users {
		fmt.Println(u.ID, u.Name)
	}
	// Output:
	// users/1-A Ada
	// users/2-A Grace
	// users/mine Edsger
}

// TestNumbers: one Create takes all its ids together, whether its rows are structs or pointers.
func TestNumbers(t *testing.T) {
	db := opened(t)
	if err := db.Create(&Order{}).Error; err != nil {
		t.Fatal(err)
	}
	orders := make([]*Order, 100)
	for i := range orders {
		orders[i] = &Order{}
	}
	orders[50].Number = 5000
	if err := db.Create(orders).Error; err != nil {
		t.Fatal(err)
	}
	next := int64(2)
	for i, o := range orders {
		want := Order{ID: uint64(i + 2), Number: next, Text: fmt.Sprintf("texts/%d", i+2)}
		if i == 50 {
			want.Number = 5000
		} else {
			next++
		}
		var stored Order
		if err := db.First(&stored, o.ID).Error; err != nil || stored != want || *o != want {
			t.Fatalf("%+v, stored %+v, want %+v: %v", *o, stored, want, err)
		}
	}
	if err := db.Model(&Order{}).Create(map[string]any{"ID": 7000}).Error; err != nil {
		t.Errorf("a map: %v", err)
	}
}

type Wrong struct {
	ID string `gorm:"primaryKey" idnode:"users"`
}

// TestNothingIsInsertedWithoutIDs: a wrong tag, and a call that was canceled.
func TestNothingIsInsertedWithoutIDs(t *testing.T) {
	db := opened(t)
	if err := db.Create(&Wrong{}).Error; err == nil {
		t.Error("a wrong tag is taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.WithContext(ctx).Create(&[]Order{{}, {}}).Error; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var e *client.Error
	if err := db.WithContext(ctx).Create(&User{}).Error; !errors.As(err, &e) {
		t.Error(err)
	}
	var count int64
	if err := db.Model(&User{}).Count(&count).Error; err != nil || count != 0 {
		t.Errorf("%d users: %v", count, err)
	}
}

// Package own_test uses instances that no "berth run" started.
package own_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/owner/berth-go"
	"github.com/owner/berth-go/berthtest"
)

func TestInstances(t *testing.T) {
	shared := berthtest.Start(t)
	fmt.Println("at", shared.BaseURL)
	if again := berthtest.Start(t).BaseURL; again != shared.BaseURL {
		t.Fatalf("another instance, %s", again)
	}
	if _, err := shared.Client.CreateServer(t.Context(), berth.ServerCreate{}); err != nil {
		t.Fatal(err)
	}
	own := berthtest.StartOwn(t, "--freeze", "2030-01-31T23:00:00Z")
	fmt.Println("at", own.BaseURL)
	if now := own.ReadClock().Now; !now.Equal(time.Date(2030, 1, 31, 23, 0, 0, 0, time.UTC)) {
		t.Fatalf("its clock is at %s", now)
	}
	if os.Getenv("KILL") != "" {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

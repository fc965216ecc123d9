// Package berth is a client of berth, a server-provisioning and agent-task API that runs on your machine.
//
//	client := berth.New() // takes BERTH_BASE_URL and BERTH_API_KEY
//	server, err := client.CreateServer(ctx, berth.ServerCreate{Task: berth.Ptr("demo"), Tier: berth.Ptr(berth.TierSmall)})
//	if err != nil {
//		return err
//	}
//	defer server.Delete(ctx)
//	result, err := server.Exec(ctx, "npm test", &berth.ExecOptions{Stdout: os.Stdout})
//
// A [Client] returns handles: [Server], [Project], [Task], [Build] and [Execution]. A handle has the fields of the object as
// they were when it was last read; Refresh and every method that changes the object read them anew, so a handle is not for
// several goroutines at once. A Client is.
//
// Every operation, also one without a method here, is called through [Client.API], whose package is generated.
//
// # Errors
//
// A request that failed is an [*Error]: its code, message and request id. errors.Is compares it with [ErrNotFound] and the
// other sentinels. A response that did not arrive, or not whole, is [ErrConnection]. The end of a context is the context's
// error.
//
// # Retries
//
// A request is tried again, twice by default, where that cannot do anything twice: GET, PUT, DELETE, and the creation of
// servers, projects, tasks, builds, keys and webhooks, which carry an Idempotency-Key, after a lost connection and after 502,
// 503 and 504; every request if the connection was refused, or after a 429 that asks to wait at most 30 s. Commands, answers,
// pushes and restarts are never sent twice.
package berth

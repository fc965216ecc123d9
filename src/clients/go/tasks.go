package berth

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"

	"github.com/owner/berth-go/api"
)

// Task is a goal that an agent works on.
type Task struct {
	api.Task
	transport *transport
}

// CreateTask gives the agent a goal, and returns at once.
func (s *Server) CreateTask(ctx context.Context, goal string) (*Task, error) {
	var created api.CreatedTask
	if err := s.transport.json(ctx, http.MethodPost, s.path()+"/tasks", api.TaskCreate{Goal: goal}, &created); err != nil {
		return nil, err
	}
	return s.GetTask(ctx, created.TaskID)
}

// RunTask gives the agent a goal and waits for the end. The function answers the questions of the agent; without one the task
// is returned when it asks, as TaskStatusAwaitingInput. A task that fails is no error: see its Status.
func (s *Server) RunTask(ctx context.Context, goal string, answer func(question string) string) (*Task, error) {
	task, err := s.CreateTask(ctx, goal)
	if err != nil {
		return nil, err
	}
	for {
		if err := task.Wait(ctx); err != nil {
			return task, err
		}
		if task.Status != TaskStatusAwaitingInput || answer == nil {
			return task, nil
		}
		question := ""
		if task.Question != nil {
			question = *task.Question
		}
		if err := task.Answer(ctx, answer(question)); err != nil {
			return task, err
		}
	}
}

// GetTask returns a task of the server.
func (s *Server) GetTask(ctx context.Context, id string) (*Task, error) {
	task := &Task{Task: api.Task{ID: id, ServerID: s.ID}, transport: s.transport}
	if err := task.Refresh(ctx); err != nil {
		return nil, err
	}
	return task, nil
}

// ListTasks lists the tasks of the server, the newest first.
func (s *Server) ListTasks(ctx context.Context) ([]*Task, error) {
	return listTasks(ctx, s.transport, s.path()+"/tasks")
}

func listTasks(ctx context.Context, t *transport, path string) ([]*Task, error) {
	var list api.TaskList
	if err := t.json(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, err
	}
	return handles(list.Tasks, func(data api.Task) *Task { return &Task{Task: data, transport: t} }), nil
}

func (t *Task) path() string {
	return "/servers/" + url.PathEscape(t.ServerID) + "/tasks/" + url.PathEscape(t.ID)
}

// Refresh reads the task anew.
func (t *Task) Refresh(ctx context.Context) error {
	return t.take(ctx, call{method: http.MethodGet, path: t.path()})
}

// Answer answers its question.
func (t *Task) Answer(ctx context.Context, answer string) error {
	var envelope api.TaskEnvelope
	err := t.transport.json(ctx, http.MethodPost, t.path()+"/input", api.TaskInput{Answer: answer}, &envelope)
	if err == nil {
		t.Task = envelope.Task
	}
	return err
}

// Cancel cancels it. Its command has ended when this returns.
func (t *Task) Cancel(ctx context.Context) error {
	return t.take(ctx, call{method: http.MethodPost, path: t.path() + "/cancel"})
}

// Wait waits until it is completed, failed or cancelled, or asks.
func (t *Task) Wait(ctx context.Context) error {
	return t.transport.settle(ctx, t.ID, func() (bool, error) {
		err := t.Refresh(ctx)
		return t.Status != TaskStatusRunning, err
	})
}

// Events reads its transcript, to its end. A connection that breaks off goes on where it was.
func (t *Task) Events(ctx context.Context) iter.Seq2[TaskEvent, error] {
	return func(yield func(TaskEvent, error) bool) {
		for event, err := range t.transport.events(ctx, t.path()+"/events", nil, true) {
			// Events without an id are pieces of what a later event has whole, or mark a gap.
			if err == nil && (event.id == "" || event.name == "gap") {
				continue
			}
			var entry TaskEvent
			if err == nil {
				err = json.Unmarshal(event.data, &entry)
			}
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

func (t *Task) take(ctx context.Context, c call) error {
	var envelope api.TaskEnvelope
	if err := t.transport.decode(ctx, c, &envelope); err != nil {
		return err
	}
	t.Task = envelope.Task
	return nil
}

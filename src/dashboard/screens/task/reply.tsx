import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { isSubmit, SubmitKeys, submitKeysTitle } from '../../components/submit-keys.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Task } from '../../store/store.ts'

/** Asks for the response to an agent's question. */
export function Reply({ task, question }: { task: Task; question: string }) {
  const { api, notices } = useDashboard()
  const [answer, setAnswer] = useState('')
  const { id: taskId, serverId } = task
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (!isTyping(document.activeElement)) field.current?.focus()
  }, [question])
  const send = async (): Promise<void> => {
    await api.call('tasks.answer', { params: { serverId, taskId }, body: { answer } })
    setAnswer('')
  }
  return (
    <form
      class="reply panel"
      onSubmit={(event) => {
        event.preventDefault()
        void notices.attempt(send)
      }}
    >
      <label class="field">
        <span>
          The agent waits for your response
          {question !== '' && <span class="visually-hidden">: {question}</span>}
        </span>
        <textarea
          ref={field}
          rows={3}
          value={answer}
          onInput={({ currentTarget }) => setAnswer(currentTarget.value)}
          onKeyDown={(event) => {
            if (isSubmit(event)) void notices.attempt(send)
          }}
        />
      </label>
      <Button type="submit" look="primary" title={submitKeysTitle()}>
        Send
        <SubmitKeys />
      </Button>
      <CommandLines
        berth={`berth tasks answer ${taskId} ${quoted(answer)}`}
        method="POST"
        path={`/servers/${serverId}/tasks/${taskId}/input`}
        body={{ answer }}
      />
    </form>
  )
}

/** Reports whether the element with the focus is one that text goes into, or is in a dialog. */
const isTyping = (focused: Element | null): boolean =>
  focused?.matches('input, textarea, select, [contenteditable="true"], dialog *') ?? false

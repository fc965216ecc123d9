import type { Project } from '../store/store.ts'
import { Time } from './time.tsx'

/** Says how an app crashed, and when it is started again. Nothing of one that did not. */
export function CrashNotice({ crash, remedy }: { crash: Project['crash'] | undefined; remedy: string }) {
  if (!crash) return null
  return (
    <div class="notice failure" role="alert">
      <p>{crash.reason}</p>
      <p class="quiet">
        It responded last <Time at={crash.since} />.{' '}
        {crash.restarts_at === null ? (
          `Nothing starts it again by itself: ${remedy}.`
        ) : (
          <>
            Attempt {crash.attempt} of 5 begins <Time at={crash.restarts_at} isDue />.
          </>
        )}
      </p>
    </div>
  )
}

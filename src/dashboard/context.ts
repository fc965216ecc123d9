import type { DashboardContext } from '../http/dashboard/page.ts'

/** What the page brought with it. */
export interface PageContext extends DashboardContext {
  /** Allows style elements of terminals and the editor (CSP, nonce-source). */
  readonly nonce: string
}

/** Reads what the page brought with it, from the element that it is drawn in. */
export const readContext = ({ dataset }: HTMLElement): PageContext => ({
  ...(JSON.parse(dataset.context ?? '{}') as DashboardContext),
  nonce: dataset.nonce ?? '',
})

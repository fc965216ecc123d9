import { type AppPlan, NoAppFound } from '../../hosting/app-runtime/plan.ts'
import type { Place, Preparation } from './prepare.ts'

/** The files of a folder in which nothing is found that starts, shown as a listing where there is no page. */
const LISTING: AppPlan = {
  kind: 'files',
  install: null,
  build: null,
  start: { kind: 'files', folder: '', fallback: false },
  health: '/',
  watch: false,
  env: {},
}

/** How a workspace is published: the app or the pages that are found in it, else all its files. @throws AppError */
export async function publishable(preparation: Preparation, place: Place): Promise<AppPlan> {
  try {
    return await preparation.plan(place)
  } catch (error) {
    if (error instanceof NoAppFound) return LISTING
    throw error
  }
}

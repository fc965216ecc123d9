import { StartupError } from '../../errors.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { type AccountPlan, PlanOverrides } from './model.ts'
import { DEFAULT_PLAN, withOverrides } from './plan.ts'

/**
 * Returns the plan of an instance: the default with the configured fields replaced. Without a configured plan, the
 * start loads none of this.
 *
 * @throws StartupError if the configured value is not a plan
 */
export function configuredPlan(configured: unknown): AccountPlan {
  try {
    return withOverrides(DEFAULT_PLAN, new Validator(PlanOverrides).parse(configured))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new StartupError(
      `The configured plan is invalid. ${error.describe('plan')} Correct --plan, BERTH_PLAN or "plan" in the config file.`,
    )
  }
}

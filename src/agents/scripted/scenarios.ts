/** Scenarios of the scripted agent for those who take, store and show them. Reading them loads what a start does without. */
export {
  SCENARIO_FIELDS,
  ScenarioText,
  ScenarioTexts,
  type StepKind,
  StepKindName,
  StepText,
} from './model.ts'
export { previewGoal } from './preview.ts'
export { readScenarios } from './read.ts'
export { firstLine } from './result.ts'

import { t } from 'elysia'

/** Response of every removal. */
export const DeleteResult = t.Object(
  { id: t.String(), deleted: t.Literal(true) },
  { $id: 'DeleteResult', additionalProperties: false },
)

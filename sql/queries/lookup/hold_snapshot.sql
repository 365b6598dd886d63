-- Makes all reads of the transaction see one moment, whatever is settled meanwhile. Explanations, exports of a
-- customer and verification run it.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

-- Explain: makes all reads see one moment, whatever is settled meanwhile.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

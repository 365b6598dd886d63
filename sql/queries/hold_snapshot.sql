-- Explain: everything is read as it was at one moment, whatever is settled meanwhile.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

-- Feed: stores a new id where the database is not the one that got the old id; the table's trigger makes the id.
UPDATE ledger.feed f SET position = f.position WHERE f.place <> ledger.feed_place() RETURNING f.former_id, f.feed_id

-- Feed: writes its new id down where the database is another one than when it got the old one; the table's trigger makes it.
UPDATE ledger.feed f SET position = f.position WHERE f.place <> ledger.feed_place() RETURNING f.former_id, f.feed_id

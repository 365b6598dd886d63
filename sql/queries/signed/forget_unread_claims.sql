-- Forgets claims that no text stated for $1 days: Apple stopped, or this version reads them.
DELETE FROM ledger.unread_claim u WHERE u.last_seen_at < now() - make_interval(days => $1::int)

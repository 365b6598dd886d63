-- Orders: returns whether one of the customers ($1) has an open order, or a paid one whose payment may move, by any name.
SELECT EXISTS (
    SELECT FROM unnest($1::bigint[]) AS n(customer_id)
    CROSS JOIN LATERAL (
        SELECT n.customer_id AS name_id
        UNION ALL
        SELECT c.customer_id FROM ledger.customer c WHERE c.merged_into = n.customer_id OFFSET 0) c
    CROSS JOIN LATERAL (
        SELECT FROM ledger.purchase_order r
        WHERE r.customer_id = c.name_id AND r.state IN ('created', 'purchasing', 'deferred')
        UNION ALL
        SELECT FROM ledger.purchase_order r WHERE r.customer_id = c.name_id AND r.state = 'paid' OFFSET 0) r) AS is_open

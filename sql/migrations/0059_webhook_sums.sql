-- Messages to webhooks say until when access goes on by the clock alone, and amounts that add up; what waits is read in one go.
DROP FUNCTION ledger.webhook_messages, ledger.entitlements_known, ledger.money_of, ledger.webhook_next;

-- Volatile: each call sees what is committed by then, also where the caller waited for a lock.
CREATE FUNCTION ledger.webhook_following(webhook ledger.webhook, stream_of text, stream_id bigint, after bigint)
RETURNS SETOF bigint LANGUAGE sql VOLATILE AS $$
    SELECT f.position
    FROM (SELECT e.event_id, e AS event FROM ledger.event e
          WHERE stream_of = 'subscription' AND e.subscription_id = stream_id
          UNION ALL
          SELECT e.event_id, e FROM ledger.event e WHERE stream_of = 'purchase' AND e.purchase_id = stream_id
          UNION ALL
          SELECT e.event_id, e FROM ledger.event e
          WHERE stream_of = 'customer' AND e.customer_id = stream_id AND e.subscription_id IS NULL AND e.purchase_id IS NULL) s
    JOIN ledger.event_feed f USING (event_id)
    WHERE f.position > after AND f.position <= webhook.position AND ledger.webhook_takes(webhook, s.event)
    ORDER BY f.position
$$;
COMMENT ON FUNCTION ledger.webhook_following IS
    'The positions of a stream''s events for a webhook after a position, up to the webhook''s own, in order';

CREATE FUNCTION ledger.rights_known(customer_id bigint, at timestamptz, OUT entitlements jsonb, OUT access jsonb)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    spans ledger.entitlement_span[];
    knowledge timestamptz := at;
BEGIN
    entitlements := '[]';
    access := '[]';
    IF EXISTS (SELECT FROM ledger.customer_merge m
               WHERE m.customer_id = rights_known.customer_id AND m.applies @> rights_known.at) THEN
        RETURN;
    END IF;
    -- After the customer's newest event the present catalog counts. What the event's own transaction stored is what the
    -- history says, if nothing began in between.
    IF NOT EXISTS (SELECT FROM ledger.event e
                   WHERE e.customer_id = rights_known.customer_id AND e.recorded_at > rights_known.at) THEN
        SELECT GREATEST(rights_known.at, a.catalog_changed_at), v.spans INTO knowledge, spans
        FROM ledger.customer c JOIN ledger.app a USING (app_id)
        LEFT JOIN ledger.current_entitlements v
            ON v.customer_id = c.customer_id AND v.catalog_changed_at = a.catalog_changed_at
            AND v.computed_at BETWEEN rights_known.at AND rights_known.at + interval '10 seconds'
            AND NOT EXISTS (SELECT FROM unnest(v.spans) s WHERE s.starts > rights_known.at AND s.starts <= v.computed_at)
        WHERE c.customer_id = rights_known.customer_id;
    END IF;
    IF spans IS NULL THEN
        spans := ARRAY(SELECT s.span FROM ledger.entitlement_spans(
            ARRAY[rights_known.customer_id], rights_known.at, knowledge, knowledge) s);
    END IF;
    entitlements := COALESCE((
        SELECT jsonb_agg(jsonb_build_object(
            'entitlement', w.entitlement, 'granted', w.granted, 'until', ledger.iso8601(w.until),
            'product_id', w.product_id, 'state', w.state, 'reason', w.reason, 'environment', w.environment,
            'basis', w.basis, 'ended_at', ledger.iso8601(w.ended_at)) ORDER BY w.entitlement COLLATE "C")
        FROM (
            -- The order of ledger.entitlements, without the clocks of the last checks, which are not kept.
            SELECT DISTINCT ON (s.entitlement) s.* FROM unnest(spans) s
            WHERE s.starts <= rights_known.at AND s.ends > rights_known.at
            ORDER BY s.entitlement, s.place, s.granted DESC, s.environment, s.until DESC NULLS FIRST,
                     s.basis COLLATE "C" DESC, s.product_id COLLATE "C", s.subscription_id, s.purchase_id) w), '[]');
    -- At each instant the lowest place decides, and there any source that grants.
    access := COALESCE((
        SELECT jsonb_agg(jsonb_build_object(
            'entitlement', g.entitlement, 'until', ledger.iso8601(upper(stretch)),
            'from', CASE WHEN lower(stretch) > rights_known.at THEN ledger.iso8601(lower(stretch)) END)
            ORDER BY g.entitlement COLLATE "C", lower(stretch))
        FROM (
            SELECT s.entitlement,
                   COALESCE(range_agg(r) FILTER (WHERE s.granted AND s.place = 1), '{}')
                   + (COALESCE(range_agg(r) FILTER (WHERE s.granted AND s.place > 1), '{}')
                      - COALESCE(range_agg(r) FILTER (WHERE s.place = 1), '{}')) AS stretches
            FROM unnest(spans) s
            CROSS JOIN LATERAL (SELECT tstzrange(GREATEST(s.starts, rights_known.at), s.ends) AS r) x
            WHERE s.ends > rights_known.at
            GROUP BY s.entitlement) g
        CROSS JOIN LATERAL unnest(g.stretches) AS stretch), '[]');
END
$$;
COMMENT ON FUNCTION ledger.rights_known IS
    'What messages to webhooks say of a customer, the same at each call: what the customer may use at an instant as known at '
    'it, and the stretches of time with access from it on if nothing more is heard, outage allowances included (no from: it '
    'runs already; no until: without end). With the present catalog where the customer has no later event. A merged name has '
    'nothing of its own';

-- The rules of ledger.charges_of and ledger.revenue_of, in a form whose plan serves a few streams, each at an instant of its
-- own: a test compares.
CREATE FUNCTION ledger.money_of(are_purchases boolean[], streams bigint[], known_ats timestamptz[], others timestamptz[])
RETURNS TABLE (
    place bigint, occurred_at timestamptz, kind text, product_id text, amount_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE AS $$
    WITH bought AS (
        SELECT q.*, c.*,
               CASE WHEN c.cancelled_at IS NULL AND lag(c.expires_at) OVER stream > c.purchased_at THEN c.purchased_at
                    ELSE lead(c.purchased_at) OVER stream END AS followed_at
        FROM unnest(are_purchases, streams, known_ats, others)
            WITH ORDINALITY AS q(is_purchase, stream_id, known_at, other, place)
        CROSS JOIN LATERAL (
            SELECT k.bundle_id, v.charge_id, v.product_id, v.quantity, v.purchased_at, v.expires_at, v.cancelled_at,
                   v.is_upgraded, v.offer, v.is_family_shared, v.price_milliunits, v.currency, v.revocation_percentage,
                   v.known_from, v.known_until, v.cancellation_known_at, v.seats, v.revoked_seats, v.refunded_share
            FROM perennial.period_version v JOIN perennial.subscription_key k USING (stream_id)
            WHERE NOT q.is_purchase AND v.stream_id = q.stream_id
            UNION ALL
            SELECT v.bundle_id, v.stream_id, v.product_id, v.quantity, v.purchased_at, NULL, v.revoked_at, false, NULL,
                   v.is_family_shared, v.price_milliunits, v.currency, v.revocation_percentage, v.known_from, v.known_until,
                   v.revocation_known_at, NULL, 0, v.refunded_share
            FROM perennial.purchase_history v WHERE q.is_purchase AND v.stream_id = q.stream_id) c
        WHERE c.known_from <= q.known_at AND COALESCE(c.known_until > q.known_at, true)
        WINDOW stream AS (PARTITION BY q.place ORDER BY c.purchased_at, c.charge_id)
    ), charge AS (
        SELECT b.*, CASE WHEN r.is_rest_refunded THEN b.followed_at
                         WHEN b.is_upgraded THEN LEAST(b.cancelled_at, b.followed_at) END AS replaced_at, r.is_rest_refunded
        FROM bought b
        CROSS JOIN LATERAL (
            SELECT COALESCE(b.is_upgraded AND b.revocation_percentage = 100000 AND b.cancelled_at >= b.purchased_at
                            AND COALESCE(b.cancelled_at NOT BETWEEN b.followed_at - interval '1 minute'
                                                                AND b.followed_at + interval '1 minute',
                                         b.cancelled_at >= b.expires_at), false) AS is_rest_refunded) r
        WHERE NOT b.is_family_shared AND b.offer IS DISTINCT FROM 'trial'
          -- What was the same at the other instant has the same amounts, unless its neighbours decide them.
          AND (b.other IS NULL OR b.is_upgraded OR b.known_from > b.other OR b.known_until <= b.other)
    )
    SELECT c.place, moved.occurred_at, moved.kind, c.product_id, moved.amount, price.currency, basis.word
    FROM charge c
    CROSS JOIN LATERAL (
        -- What uploads reported that may be about it.
        SELECT ARRAY(
            SELECT s FROM perennial.period_stated_price s
            WHERE NOT c.is_purchase AND s.stream_id = c.stream_id AND s.stated_at <= c.known_at
            UNION ALL
            SELECT ROW(s.*)::perennial.period_stated_price FROM perennial.purchase_stated_price s
            WHERE c.is_purchase AND s.stream_id = c.stream_id AND s.stated_at <= c.known_at) AS stated OFFSET 0) reported
    LEFT JOIN LATERAL (
        -- A price is about the newest thing bought when the upload came.
        SELECT w.price_milliunits, w.currency
        FROM unnest(reported.stated) w
        WHERE w.price_milliunits IS NOT NULL AND c.purchased_at <= w.stated_at + interval '5 minutes'
          AND NOT EXISTS (
              SELECT FROM perennial.period_stated_price s
              CROSS JOIN LATERAL (
                  SELECT FROM perennial.period_version v
                  WHERE v.stream_id = s.stream_id AND v.known_from <= c.known_at
                    AND COALESCE(v.known_until > c.known_at, true) AND NOT v.is_family_shared
                    AND v.purchased_at <= w.stated_at + interval '5 minutes'
                    AND (v.purchased_at > c.purchased_at
                         OR v.purchased_at = c.purchased_at AND NOT c.is_purchase AND v.charge_id < c.charge_id)
                  LIMIT 1) newer
              WHERE s.stated_id = w.stated_id)
          AND NOT EXISTS (
              SELECT FROM perennial.purchase_stated_price s
              JOIN perennial.purchase_history v USING (stream_id)
              WHERE s.stated_id = w.stated_id AND v.known_from <= c.known_at AND COALESCE(v.known_until > c.known_at, true)
                AND v.purchased_at <= w.stated_at + interval '5 minutes'
                AND (v.purchased_at > c.purchased_at
                     OR v.purchased_at = c.purchased_at AND (NOT c.is_purchase OR v.stream_id < c.charge_id)))
        ORDER BY w.stated_at DESC, w.stated_id DESC LIMIT 1) stated ON true
    LEFT JOIN LATERAL (
        SELECT w.storefront
        FROM (SELECT s.storefront,
                     CASE WHEN row_number() OVER stated = 1 THEN '-infinity' ELSE s.stated_at - interval '1 day' END AS since,
                     COALESCE(lead(s.stated_at) OVER stated - interval '1 day', 'infinity') AS until
              FROM unnest(reported.stated) s WHERE s.storefront IS NOT NULL
              WINDOW stated AS (ORDER BY s.stated_at, s.stated_id)) w
        WHERE w.since <= c.purchased_at AND c.purchased_at < w.until) spot ON true
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = c.bundle_id AND there.product_id = c.product_id AND there.storefront = spot.storefront
        AND there.valid_from <= c.purchased_at AND c.purchased_at < there.valid_until
        AND there.known_from <= c.known_at AND COALESCE(there.known_until > c.known_at, true)
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = c.bundle_id AND anywhere.product_id = c.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= c.purchased_at AND c.purchased_at < anywhere.valid_until
        AND anywhere.known_from <= c.known_at AND COALESCE(anywhere.known_until > c.known_at, true)
    CROSS JOIN LATERAL (
        SELECT ledger.price_basis(c.offer, c.is_family_shared, c.price_milliunits, stated.price_milliunits,
                                  there.price_milliunits, anywhere.price_milliunits) AS word) basis
    CROSS JOIN LATERAL (
        SELECT CASE basis.word WHEN 'apple' THEN c.price_milliunits
                               WHEN 'stated' THEN c.quantity * stated.price_milliunits
                               WHEN 'storefront' THEN c.quantity * there.price_milliunits
                               WHEN 'default' THEN c.quantity * anywhere.price_milliunits END AS amount,
               CASE basis.word WHEN 'apple' THEN c.currency WHEN 'stated' THEN stated.currency
                               WHEN 'storefront' THEN there.currency WHEN 'default' THEN anywhere.currency
                               END AS currency) price
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.replaced_at < c.expires_at AND c.refunded_share IS NOT NULL THEN
            round(price.amount * COALESCE(
                CASE WHEN NOT c.is_rest_refunded THEN c.revocation_percentage / 100000.0 END,
                LEAST(1, extract(epoch FROM c.expires_at - c.replaced_at)
                         / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0))))::bigint END AS amount) repaid
    CROSS JOIN LATERAL (
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, price.amount
        UNION ALL
        SELECT 'refund', c.cancelled_at,
               CASE WHEN c.is_rest_refunded THEN COALESCE(repaid.amount, 0) - price.amount
                    ELSE -round(price.amount * c.refunded_share)::bigint END
        WHERE c.cancelled_at IS NOT NULL AND (c.is_rest_refunded OR NOT c.is_upgraded)
        UNION ALL
        SELECT 'refund', c.cancellation_known_at,
               -round(price.amount * c.revoked_seats / GREATEST(1, c.seats)::numeric)::bigint
        WHERE c.cancelled_at IS NULL AND c.revoked_seats > 0
        UNION ALL
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at), -repaid.amount
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, NOT c.is_rest_refunded)) moved
$$;
COMMENT ON FUNCTION ledger.money_of IS
    'What ledger.revenue_of has of some subscriptions and one-time purchases, each as known at an instant; place is the one in '
    'the arrays. Where others names an instant too, charges that were the same then are left out, though their prices may '
    'differ. ledger.revenue_of is for whole ledgers: its plan takes longer than to look a few of them up';

CREATE FUNCTION ledger.webhook_messages(positions bigint[])
RETURNS TABLE ("position" bigint, stream_of text, stream_id bigint, identity text, body text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    refunds text[] := '{refund.granted,refund.reversed,purchase.refunded,family.revoked}';
    charges text[] := '{subscription.started,trial.started,trial.converted,subscription.renewed,subscription.recovered,'
        'subscription.reactivated,product.changed,purchase.made}';
BEGIN
    RETURN QUERY
    WITH chosen AS MATERIALIZED (
        SELECT f.position, e.*, a.bundle_id, a.catalog_changed_at, c.name AS customer,
               COALESCE(s.original_transaction_id, p.original_transaction_id) AS transaction_id
        FROM ledger.event_feed f
        JOIN ledger.event e USING (event_id)
        JOIN ledger.app a USING (app_id)
        LEFT JOIN ledger.subscription s USING (subscription_id)
        LEFT JOIN ledger.purchase p USING (purchase_id)
        LEFT JOIN ledger.customer c USING (customer_id)
        WHERE f.position = ANY(positions)
    ), change AS (
        -- An event tells how the figures moved since the event before of its stream, so that they add up.
        SELECT t.*, former.at,
               CASE WHEN t.catalog_changed_at < former.at AND NOT EXISTS (
                   SELECT FROM perennial.stated_price w
                   WHERE w.kind = CASE WHEN t.purchase_id IS NULL THEN 'subscription' ELSE 'purchase' END
                     AND w.stream_id = COALESCE(t.subscription_id, t.purchase_id) AND w.stated_at > former.at)
                    THEN former.at END AS same_prices_at
        FROM (SELECT DISTINCT subscription_id, purchase_id, recorded_at, catalog_changed_at FROM chosen
              WHERE num_nonnulls(subscription_id, purchase_id) = 1) t
        LEFT JOIN LATERAL (
            SELECT max(b.recorded_at) AS at FROM ledger.event b
            WHERE (b.subscription_id = t.subscription_id OR b.purchase_id = t.purchase_id)
              AND b.recorded_at < t.recorded_at) former ON true
    ), asked AS MATERIALIZED (
        SELECT row_number() OVER () AS place, t.*, s.*
        FROM change t
        CROSS JOIN LATERAL (
            VALUES (1, t.recorded_at, t.same_prices_at),
                   (-1, t.at, CASE WHEN t.same_prices_at IS NOT NULL THEN t.recorded_at END)) s(sign, known_at, other)
        WHERE s.known_at IS NOT NULL
    ), moved AS (
        SELECT q.subscription_id, q.purchase_id, q.recorded_at, m.occurred_at, m.kind, m.product_id, m.currency, m.price_basis,
               sum(q.sign) * m.amount_milliunits AS amount_milliunits
        FROM (SELECT array_agg(a.purchase_id IS NOT NULL ORDER BY a.place) AS are_purchases,
                     array_agg(COALESCE(a.subscription_id, a.purchase_id) ORDER BY a.place) AS streams,
                     array_agg(a.known_at ORDER BY a.place) AS known_ats, array_agg(a.other ORDER BY a.place) AS others
              FROM asked a) n
        CROSS JOIN LATERAL ledger.money_of(n.are_purchases, n.streams, n.known_ats, n.others) m
        JOIN asked q USING (place)
        GROUP BY q.subscription_id, q.purchase_id, q.recorded_at, m.occurred_at, m.kind, m.product_id, m.currency, m.price_basis,
                 m.amount_milliunits
        HAVING sum(q.sign) > 0 OR sum(q.sign) < 0 AND m.amount_milliunits IS NOT NULL
    ), earned AS (
        -- Each amount is in one event of the version that brought it.
        SELECT bearer.event_id, jsonb_agg(jsonb_build_object(
                   'kind', m.kind, 'occurred_at', ledger.iso8601(m.occurred_at), 'product_id', m.product_id,
                   'amount_milliunits', m.amount_milliunits, 'currency', m.currency, 'price_basis', m.price_basis)
                   ORDER BY m.occurred_at, m.kind, m.product_id, m.amount_milliunits, m.currency, m.price_basis) AS money
        FROM moved m
        CROSS JOIN LATERAL (
            SELECT b.event_id FROM ledger.event b
            WHERE (b.subscription_id = m.subscription_id OR b.purchase_id = m.purchase_id) AND b.recorded_at = m.recorded_at
            ORDER BY b.kind::text = ANY(CASE m.kind WHEN 'refund' THEN refunds ELSE charges END) DESC,
                     b.product_id = m.product_id DESC, b.occurred_at = m.occurred_at DESC, b.ordinal DESC LIMIT 1) bearer
        GROUP BY bearer.event_id
    )
    SELECT t.position,
           CASE WHEN t.subscription_id IS NOT NULL THEN 'subscription' WHEN t.purchase_id IS NOT NULL THEN 'purchase'
                ELSE 'customer' END,
           COALESCE(t.subscription_id, t.purchase_id, t.customer_id),
           concat_ws('/', t.bundle_id, t.environment, CASE
               WHEN t.subscription_id IS NOT NULL THEN 'subscription/' || t.transaction_id
               WHEN t.purchase_id IS NOT NULL THEN 'purchase/' || t.transaction_id || '/' || t.product_id
               ELSE 'customer/' || t.customer END, t.kind, extract(epoch FROM t.occurred_at), t.product_id,
               COALESCE(t.detail->>'transaction_id', ''), (
               SELECT count(*) FROM (
                   SELECT b.* FROM ledger.event b WHERE b.subscription_id = t.subscription_id
                   UNION ALL
                   SELECT b.* FROM ledger.event b WHERE b.purchase_id = t.purchase_id
                   UNION ALL
                   SELECT b.* FROM ledger.event b
                   WHERE num_nonnulls(t.subscription_id, t.purchase_id) = 0 AND b.customer_id = t.customer_id
                     AND b.subscription_id IS NULL AND b.purchase_id IS NULL) b
               WHERE b.kind = t.kind AND b.occurred_at = t.occurred_at AND b.product_id IS NOT DISTINCT FROM t.product_id
                 AND b.detail->>'transaction_id' IS NOT DISTINCT FROM t.detail->>'transaction_id'
                 AND (b.version, b.ordinal) < (t.version, t.ordinal))),
           jsonb_build_object('type', t.kind, 'timestamp', ledger.iso8601(t.occurred_at), 'data', jsonb_build_object(
               'event', jsonb_build_object(
                   'position', t.position, 'id', t.public_id, 'app', t.bundle_id, 'environment', t.environment,
                   'original_transaction_id', t.transaction_id, 'customer', t.customer, 'kind', t.kind,
                   'product_id', t.product_id, 'occurred_at', ledger.iso8601(t.occurred_at),
                   'recorded_at', ledger.iso8601(t.recorded_at), 'version', t.version, 'ordinal', t.ordinal,
                   'detail', t.detail),
               'money', CASE WHEN size.rights + octet_length(m.money::text) > 16000 THEN NULL ELSE COALESCE(m.money, '[]') END,
               'customer', t.customer, 'previous_customer', former.name,
               -- The whole message has at most 20 kB.
               'entitlements', CASE WHEN size.rights > 0 THEN rights.entitlements END,
               'access', CASE WHEN size.rights > 0 THEN rights.access END,
               'position', t.position, 'feed', feed.feed_id,
               'feed_since', ledger.iso8601(GREATEST(feed.begun_at, feed.renewed_at))))::text
    FROM chosen t
    CROSS JOIN ledger.feed
    LEFT JOIN earned m USING (event_id)
    LEFT JOIN LATERAL (
        SELECT c.name FROM ledger.ownership o JOIN ledger.customer c USING (customer_id)
        WHERE t.kind::text = 'ownership.transferred' AND c.erased_at IS NULL
          AND (o.subscription_id = t.subscription_id OR o.purchase_id = t.purchase_id)
          AND lower(o.known) = t.recorded_at AND upper(o.valid) = t.recorded_at LIMIT 1) former ON true
    -- The newest knowledge about the customer up to the event, whichever of two transactions committed first.
    LEFT JOIN LATERAL (
        SELECT b.recorded_at FROM ledger.event b JOIN ledger.event_feed g USING (event_id)
        WHERE b.customer_id = t.customer_id AND g.position <= t.position
        ORDER BY b.recorded_at DESC LIMIT 1) known ON true
    -- OFFSET 0: what is used several times is computed once.
    CROSS JOIN LATERAL (
        SELECT COALESCE(r.entitlements, '[]') AS entitlements, COALESCE(r.access, '[]') AS access
        FROM ledger.rights_known(t.customer_id, known.recorded_at) r OFFSET 0) rights
    CROSS JOIN LATERAL (
        SELECT octet_length(rights.entitlements::text) + octet_length(rights.access::text) AS length OFFSET 0) said
    CROSS JOIN LATERAL (SELECT CASE WHEN said.length > 16000 THEN 0 ELSE said.length END AS rights) size;
END
$$;
COMMENT ON FUNCTION ledger.webhook_messages IS
    'The messages about the events at some positions, with what makes the id of each; the same at each call but for a new '
    'catalog. money: how what perennial.revenue_event has of the stream moved since the event before, so that the messages of '
    'a stream add up. entitlements and access: as known at the newest event of the customer up to the position. Null: they are '
    'too many for a message';

-- Programs of before use functions that are gone.
UPDATE ledger.compatibility SET program_min = (SELECT count(*) + 1 FROM ledger.migration);

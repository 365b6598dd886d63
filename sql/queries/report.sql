-- Reports that the program runs.

-- name: why_no_rows
-- Report: says why a report from $1 until $2 (null: any) in time zone $3 has no rows, of app $4 and environment $5 (null: any).
SELECT COALESCE(perennial.instant($1::text, COALESCE($3::text, 'UTC'))
                    >= perennial.instant($2::text, COALESCE($3::text, 'UTC')), false) AS is_reversed,
       COALESCE(perennial.instant($1::text, COALESCE($3::text, 'UTC')) > now(), false) AS is_ahead,
       NOT EXISTS (SELECT FROM perennial.app_now) AS has_no_app,
       NOT EXISTS (SELECT FROM perennial.receipt_now r
                   WHERE $4::text IS NULL OR r.bundle_id = $4::text) AS has_no_receipt,
       NOT EXISTS (SELECT FROM perennial.subscription_key k
                   WHERE ($4::text IS NULL OR k.bundle_id = $4::text) AND k.environment = COALESCE($5::text, k.environment))
           AND EXISTS (SELECT FROM perennial.subscription_key k
                       WHERE $4::text IS NULL OR k.bundle_id = $4::text) AS is_elsewhere

-- name: quote_values
-- Returns the texts $1 as SQL literals, in order, the way psql inserts variables into a report.
SELECT quote_literal(v.value) AS literal FROM unnest($1::text[]) WITH ORDINALITY AS v (value, place) ORDER BY v.place

-- name: read_value
-- Reads the text $1 as a report does: as an instant, a whole number or the name of a zone, as $2 says. Fails if it is none.
SELECT CASE $2::text WHEN 'instant' THEN ($1::text)::timestamptz::text
                     WHEN 'number' THEN ($1::text)::int::text
                     ELSE (now() AT TIME ZONE $1::text)::text END AS read

-- Returns the texts $1 as SQL literals, in order, the way psql inserts variables into a report.
SELECT quote_literal(v.value) AS literal FROM unnest($1::text[]) WITH ORDINALITY AS v (value, place) ORDER BY v.place

/// Single-row inserts by pgbench, each in a durable transaction of its own: a table with a primary key and nothing else.
struct InsertCeiling {
    let world: World

    /// Makes the table; its rows are as large as orders.
    func prepare() async throws {
        try await world.sql(
            """
            CREATE SCHEMA bench;
            CREATE TABLE bench.inserted (
                id uuid PRIMARY KEY DEFAULT gen_random_uuid(), customer_id bigint NOT NULL, product_id text NOT NULL,
                quantity int NOT NULL, price_milliunits bigint, currency text,
                token uuid NOT NULL DEFAULT gen_random_uuid(), sealed_key bytea NOT NULL, state text NOT NULL,
                created_at timestamptz NOT NULL, expires_at timestamptz NOT NULL)
            """)
    }

    /// Inserts rows by so many clients; returns their number.
    func insert(_ rows: Int, clients: Int) throws -> Int {
        try world.client(
            "pgbench",
            [
                "--no-vacuum", "--client=\(clients)", "--jobs=2", "--protocol=prepared",
                "--transactions=\(rows / clients)", "--file=\(try World.value("BENCHMARKS"))/lib/insert_rows.sql",
                world.connectionString,
            ])
        return rows / clients * clients
    }
}

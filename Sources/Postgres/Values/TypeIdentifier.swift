/// The OIDs of PostgreSQL's built-in types that we send or read (`pg_type.dat`; they never change).
enum TypeIdentifier {
    static let bool: UInt32 = 16
    static let bytea: UInt32 = 17
    static let int8: UInt32 = 20
    static let int2: UInt32 = 21
    static let int4: UInt32 = 23
    static let text: UInt32 = 25
    static let oid: UInt32 = 26
    static let float4: UInt32 = 700
    static let float8: UInt32 = 701
    static let timestamptz: UInt32 = 1184
    static let uuid: UInt32 = 2950
    static let jsonb: UInt32 = 3802

    static let bools: UInt32 = 1000
    static let byteas: UInt32 = 1001
    static let int2s: UInt32 = 1005
    static let int4s: UInt32 = 1007
    static let texts: UInt32 = 1009
    static let int8s: UInt32 = 1016
    static let float8s: UInt32 = 1022
    static let timestamptzs: UInt32 = 1185
    static let uuids: UInt32 = 2951
    static let jsonbs: UInt32 = 3807

    /// Types whose binary form is their text: "char", name, text, json, xml, unknown, bpchar, varchar.
    private static let textual: Set<UInt32> = [18, 19, 25, 114, 142, 705, 1042, 1043]

    /// Returns whether the binary form is UTF-8 text. The user-defined types (from 16384) that we read are enums, whose
    /// form is text.
    static func isTextual(_ type: UInt32) -> Bool { type >= 16_384 || textual.contains(type) }
}

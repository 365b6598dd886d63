/// Statements that judge how far notifications make sweeps for refunds needless.
extension Queries {
    package static let addSweepProofs = SQLFile("add_sweep_proofs", PackageResources.add_sweep_proofs_sql)
    package static let beginSweepTrust = SQLFile("begin_sweep_trust", PackageResources.begin_sweep_trust_sql)
    package static let lockSweeps = SQLFile("lock_sweeps", PackageResources.lock_sweeps_sql)
    package static let readRefunds = SQLFile("read_refunds", PackageResources.read_refunds_sql)
    package static let readSweepTrust = SQLFile("read_sweep_trust", PackageResources.read_sweep_trust_sql)
    package static let recallSweeps = SQLFile("recall_sweeps", PackageResources.recall_sweeps_sql)
    package static let statusSweeps = SQLFile("status_sweeps", PackageResources.status_sweeps_sql)
    package static let sumSweepProofs = SQLFile("sum_sweep_proofs", PackageResources.sum_sweep_proofs_sql)
    package static let writeSweepTrust = SQLFile("write_sweep_trust", PackageResources.write_sweep_trust_sql)
}

"""The part of Explore that holds the prediction against an uploaded log."""

from __future__ import annotations

import streamlit as st

from screens import explore_runs as runs
from screens.explore_inputs import Scenario
from topologies.errors import RingscopeError
from views import charts, explored
from views.text import label, text

MOST_MB = 5


def uploaded(chosen: Scenario, gpus: int, factor: float | None, lang: str, dark: bool) -> list[charts.Record]:
    """Draw the upload and what came of it; the measured points that belong into the curves (same collective, as many GPUs)."""
    file = st.file_uploader(
        text(lang, "explore.log.ask"), type=["txt", "log", "out", "csv", "json"], max_upload_size=MOST_MB,
        help=text(lang, "explore.log.help"), key="explore.log",
    )  # fmt: skip
    if file is None:
        return []
    try:
        with st.spinner(text(lang, "explore.log.running")):
            report = runs.report(file.getvalue(), file.name, chosen.topology, chosen.params)
    except RingscopeError as error:
        st.error(str(error))
        return []
    st.metric(text(lang, "explore.log.mape"), f"{report.mape:.1f} %", help=text(lang, "explore.log.mape_help"), border=True)
    for sentence in explored.log_summary(report, lang):
        st.markdown(sentence)
    fitting = [part for part in report.compared if part.collective == chosen.collective and part.nranks == gpus]
    if not fitting:
        first = report.compared[0]
        st.info(text(lang, "explore.log.elsewhere", collective=label(lang, "collective", first.collective), n=first.nranks))
    st.altair_chart(charts.error_chart(report.compared, lang, dark), width="stretch", key="explore.error", alt=text(
        lang, "explore.alt.error", mape=f"{report.mape:.1f}"
    ))  # fmt: skip
    with st.expander(text(lang, "explore.log.rows")):
        st.table(explored.log_cells(report, lang), border="horizontal", hide_index=True)
    for note in (*report.skipped, *report.notes):
        st.caption(note)
    return charts.measured_points(fitting, factor, lang)

"""Explore: placeholder until the page is written."""

from __future__ import annotations

import streamlit as st

from pages.shared import language
from views.text import text

st.info(text(language(), "page.explore_soon"))
